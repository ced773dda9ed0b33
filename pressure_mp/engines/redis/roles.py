"""The roles that others keep: whoever waits, or looks at a queue, sees to it that they live.

A client of ours that was killed while it waited with a role, or stood in line for one, gives
nothing back. Another implementation that is next in line cannot know; so each of ours
looks after both roles, not only after the one that it wants.
"""

from __future__ import annotations

import time

from ...exceptions import PressureError
from ...identity import hand_outs
from ...identity.client import client_id, is_gone, is_reader, process_of
from ..contract.session import ONE_TRY
from .caller import Caller
from .statuses import DONE, RESERVED, Reply

#: Seconds for which a call that may not wait waits for what a reader reserved, and between two
#: looks whether that is settled.
GRACE = 0.2
_PAUSE = 0.002


async def wake(caller: Caller, holders: list[bytes], end: float | None = None) -> None:
    """Wake those whose role a reply asks for, by the names of their connections."""
    named = tuple(holder for holder in holders if holder)
    if named:
        await caller.script("wake", named, end)


async def free_roles(caller: Caller, end: float | None = None) -> float | None:
    """Give back the roles of clients that have ended. A lease, or the time of a grant, that has run
    out is ended too, whoever had it.

    Returns in how many seconds to look again, None when there is no queue.
    """
    lease = caller.binding.options.lease
    while True:
        reply = await caller.script("keepers", (lease,), end)
        if reply[0] != DONE:
            return None
        await _end_the_gone(caller, reply[2], end)
        await put_back_unclaimed(caller, reply[3], end)
        if reply[1] != 0:  # else something was ended, and only now there is a next one
            return float(reply[1]) / 1000


async def put_back_unclaimed(caller: Caller, roles: list[bytes], end: float | None) -> None:
    """Put back the tokens that have been in no list for a lease, though no client ever had them.

    A deletion by another implementation removed them: it went on after the queue was created again.
    """
    for role in caller.binding.role_checks.overdue(roles, caller.binding.options.lease / 1000):
        await caller.script("unlock", (role, client_id()), end)


async def _end_the_gone(caller: Caller, tickets: list[bytes], end: float | None) -> None:
    gone: dict[str, bool | None] = {}
    for named in tickets:
        keeper = named.decode(errors="replace")
        process = process_of(keeper)
        if process not in gone:
            gone[process] = is_gone(keeper)
        if gone[process] or is_reader(keeper):
            await _end(caller, keeper, bool(gone[process]), end)


async def _end(caller: Caller, keeper: str, is_gone: bool, end: float | None) -> None:
    """A client has ended, or is a reader whose lease may have."""
    try:
        seen = hand_outs.read(keeper) if is_reader(keeper) else None
    except OSError:
        return  # the next look tries again
    if is_reader(keeper):
        handed = "" if seen is None else seen  # what nobody can see comes again
        who = "dead" if is_gone else "stopped"
        args = (keeper, 0, handed, who, client_id())
        await caller.script("end_reservation", args, end)
    if is_gone:
        await caller.script("evict", (keeper, caller.binding.options.lease), end)
        hand_outs.forget(keeper)


async def read_counts(caller: Caller, op: str, end: float | None) -> Reply:
    """Look at the queue when what a reader reserved is settled, or after :data:`GRACE` seconds; at
    once in a call of one try."""
    reply = await caller.script(op, (int(end == ONE_TRY),), end)
    latest, pause = time.monotonic() + GRACE, _PAUSE
    while reply[0] == RESERVED:
        await free_roles(caller, end)
        await caller.sleep(pause)
        pause *= 2
        reply = await caller.script(op, (int(time.monotonic() >= latest),), end)
    return reply


async def check_roles(caller: Caller, end: float | None) -> float | None:
    """:func:`free_roles`, once a tick for all of this process who wait for the queue or look at it.

    Returns in how many seconds to come again, None when this process does it in the background.
    """
    role_checks = caller.binding.role_checks
    if role_checks.is_due():
        role_checks.note(await free_roles(caller, end))
    return role_checks.left


async def try_to_check_roles(caller: Caller) -> None:
    """:func:`check_roles` for those who do not wait. Whoever looks has its reply: no error is
    raised."""
    try:
        await check_roles(caller, ONE_TRY)
    except PressureError:
        pass  # whoever needs a role is told


async def finish_check(caller: Caller, again: int, tickets: list[bytes]) -> None:
    """:func:`try_to_check_roles`, when another script has said what ``keepers`` says."""
    role_checks = caller.binding.role_checks
    try:
        await _end_the_gone(caller, tickets, ONE_TRY)
        role_checks.note(
            again / 1000 if again else await free_roles(caller, ONE_TRY), by_renewal=True
        )
    except PressureError:
        pass
