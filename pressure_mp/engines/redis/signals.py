"""What can be waited for: the blocking command of each signal, by discipline.

A *watch* leaves its list as it is: for the one who holds a role, or for everybody. Who stands in
*line* is served by the server, first come, first served: it moves a token for the first. A *bell*
is a list of one waiter alone, which others ring: what they put there is what the waiter gets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Milliseconds for a grant of the queue's other role, if it is first seen when one is given back.
_LEASE = 5000


@dataclass(frozen=True)
class LineKeys:
    """From where to where a token is moved, and the call that gives a granted one back."""

    free: str
    granted: str
    undo: tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Signals:
    """The signals of a discipline. A watch and a line are keys; a bell's key has the
    waiter's ticket."""

    watches: dict[str, str] = field(default_factory=dict)
    lines: dict[str, LineKeys] = field(default_factory=dict)
    #: Whether one who waits keeps the place in line however short the waits are.
    keeps_place: bool = False


_ROLES = {
    role: LineKeys(f"{role}_free", f"{role}_claim", ("release", ("", role, _LEASE)))
    for role in ("producer", "consumer")
}

#: Disciplines that have no roles.
_OTHERS = {
    "tasks": Signals(
        lines={"task": LineKeys("wake", "woken", ("rouse", ("", "")))}, keeps_place=True
    )
}

#: What the signals of a waiter alone begin with; its ticket follows.
BELL = "bell:"


def of(discipline: str, item: str) -> Signals:
    """The signals of a discipline; who waits for an item waits on the list ``item``."""
    if discipline in _OTHERS:
        return _OTHERS[discipline]
    watches = {"space": "not_full", "finished": "finished", "item": item}
    return Signals(watches, _ROLES)
