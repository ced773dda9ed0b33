"""The roles that others keep: whoever waits, or looks at a queue, sees to it that they live.

A client of ours that was killed while it waited with a role, or stood in line for one, gives
nothing back. Another implementation that is next in line cannot know; so each of ours
looks after both roles, not only after the one that it wants.
"""

from __future__ import annotations

from ...exceptions import PressureError
from ...identity.client import is_gone, process_of
from ..contract.session import ONE_TRY
from .caller import Caller
from .statuses import DONE


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
        gone: dict[str, bool | None] = {}
        for named in reply[2]:
            keeper = named.decode(errors="replace")
            process = process_of(keeper)
            if process not in gone:
                gone[process] = is_gone(keeper)
            if gone[process]:
                await caller.script("evict", (keeper, lease), end)
        if reply[1] != 0:  # else something was ended, and only now there is a next one
            return float(reply[1]) / 1000


async def make_round(caller: Caller) -> None:
    """:func:`free_roles` for those who do not wait: once a tick, however often they look. Whoever
    looks has its reply: no error is raised."""
    if not caller.binding.rounds.is_due():
        return
    try:
        await free_roles(caller, ONE_TRY)
    except PressureError:
        pass  # whoever needs a role is told
