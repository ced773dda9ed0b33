"""The signals that operations wait for, and their keys, by discipline.

A *sign* is a list that a wait leaves unchanged: it is for the holder of a role, or for all waiters.
In a *line* the server grants a token to the first waiter, by moving it to another list. A *bell* is
the list of one waiter, to which other clients put a notice that the waiter gets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Milliseconds for a grant of the queue's other role, if it is first seen when a role is given
#: back.
_LEASE = 5000


@dataclass(frozen=True)
class LineKeys:
    """The lists from which and to which a token is moved, and the call that gives a granted token
    back."""

    free: str
    granted: str
    undo: tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Signals:
    """The signals of a discipline. A sign and a line are keys; a bell's key has the
    waiter's ticket."""

    signs: dict[str, str] = field(default_factory=dict)
    lines: dict[str, LineKeys] = field(default_factory=dict)
    #: Whether a waiter keeps its place in line, however short its waits are.
    keeps_place: bool = False


_ROLES = {
    role: LineKeys(f"{role}_free", f"{role}_granted", ("release", ("", role, _LEASE)))
    for role in ("producer", "consumer")
}

#: Tasks have no roles.
_TASKS = Signals(
    lines={"task": LineKeys("wake", "woken", ("wake_another", ("", "")))}, keeps_place=True
)

#: The beginning of the signal of one waiter; its ticket follows.
BELL = "bell:"


def of(discipline: str, item: str) -> Signals:
    """Return the signals of a discipline, whose operations wait for an item on the list
    ``item``."""
    if discipline == "tasks":
        return _TASKS
    signs = {"space": "not_full", "finished": "finished", "item": item}
    return Signals(signs, _ROLES)
