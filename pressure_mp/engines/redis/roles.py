"""The check that the holders of a queue's roles live, by clients that wait or read the queue.

A client of this package that was killed while it waited with a role, or in line for a role, gives
nothing back. A client of another implementation that is next in line cannot know that; so each
client of this package checks both roles, not only the one that it wants.
"""

from __future__ import annotations

import time
from contextlib import suppress

from ...exceptions import PressureError
from ...identity import hand_outs
from ...identity.client import client_id, is_gone, is_reader, process_of
from ..contract.session import ONE_TRY
from .caller import Caller
from .packing import or_none
from .statuses import DONE, MISSING, RESERVED, Reply

#: Seconds for which a call that may not wait waits for the end of a reservation, and between two
#: checks whether it has ended.
GRACE = 0.2
_PAUSE = 0.002


async def wake(caller: Caller, holders: list[bytes]) -> None:
    """Wake the clients whose role a reply asks for, by the names of their connections."""
    named = tuple(holder for holder in holders if holder)
    if named:
        await caller.script("wake", named)


async def free_roles(caller: Caller, end: float | None = None) -> float | None:
    """Give back the roles of clients that have ended, and of all clients whose lease, or time of a
    grant, is over.

    Returns in how many seconds to check again, None when the queue does not exist.
    """
    lease = caller.binding.options.lease
    while True:
        reply = await caller.script("holders", (lease,), end)
        if reply[0] != DONE:
            return None
        await _end_dead(caller, reply[2], end)
        await put_back_never_held(caller, reply[3], end)
        if reply[1] != 0:  # otherwise a role was given back, and only now has a next client
            return float(reply[1]) / 1000


async def put_back_never_held(caller: Caller, roles: list[bytes], end: float | None) -> None:
    """Put back the tokens that have been in no list for a lease, though no client ever had them.

    A deletion by another implementation removed them: it went on after the queue was created again.
    """
    for role in caller.binding.role_checks.overdue(roles, caller.binding.options.lease / 1000):
        await caller.script("unlock", (role, client_id()), end)


async def _end_dead(caller: Caller, tickets: list[bytes], end: float | None) -> None:
    gone: dict[str, bool | None] = {}
    for named in tickets:
        holder = named.decode(errors="replace")
        process = process_of(holder)
        if process not in gone:
            gone[process] = is_gone(holder)
        if gone[process] or is_reader(holder):
            await _end(caller, holder, bool(gone[process]), end)


async def _end(caller: Caller, holder: str, is_gone: bool, end: float | None) -> None:
    """Give back the roles of a client that has ended, or end the reservation of a reader whose
    lease may have ended."""
    try:
        seen = hand_outs.read(holder) if is_reader(holder) else None
    except OSError:
        return  # the next check tries again
    if is_reader(holder):
        cause = "dead" if is_gone else "stopped"
        # Items that cannot be seen are delivered again.
        args = (holder, 0, or_none(seen), cause, client_id())
        await caller.script("end_reservation", args, end)
    if is_gone:
        await caller.script("free_roles", (holder, caller.binding.options.lease), end)
        hand_outs.forget(holder)


async def read_counts(caller: Caller, op: str, end: float | None) -> Reply:
    """Read counts of the queue when no reservation is open, or after :data:`GRACE` seconds; at once
    in a call of one try. Then call :func:`check_roles`."""
    reply = await caller.script(op, (int(end == ONE_TRY),), end)
    latest, pause = time.monotonic() + GRACE, _PAUSE
    while reply[0] == RESERVED:
        await free_roles(caller, end)
        await caller.sleep(pause)
        pause *= 2
        reply = await caller.script(op, (int(time.monotonic() >= latest),), end)
    if reply[0] != MISSING:
        with suppress(PressureError):  # an operation that needs a role gets the error
            await check_roles(caller, ONE_TRY)
    return reply


async def check_roles(caller: Caller, end: float | None) -> float | None:
    """Call :func:`free_roles`, once a tick for all operations of this process at the queue.

    Returns in how many seconds to check again, None when the renewals of this process check.
    """
    role_checks = caller.binding.role_checks
    if role_checks.is_due():
        role_checks.note(await free_roles(caller, end))
    return role_checks.left


async def finish_check(caller: Caller, again: int, tickets: list[bytes]) -> None:
    """Finish a check of the roles with the results of ``holders`` that another script returned."""
    role_checks = caller.binding.role_checks
    try:
        await _end_dead(caller, tickets, ONE_TRY)
        role_checks.note(
            again / 1000 if again else await free_roles(caller, ONE_TRY), by_renewal=True
        )
    except PressureError:
        pass
