"""The statuses of scripts. A reply is a status, then values that depend on it; see each script's
header."""

from __future__ import annotations

from typing import Any, TypeVar

from ..contract.replies import Outcome

#: A status, then values that depend on it.
Reply = list[Any]
T = TypeVar("T")

DONE = b"done"
EMPTY = b"empty"
FULL = b"full"
BUSY = b"busy"
CLOSED = b"closed"
MISSING = b"missing"
EXISTS = b"exists"
MISMATCH = b"mismatch"
UNFINISHED = b"unfinished"
DECLINED = b"declined"
UNORDERED = b"unordered"
LOST = b"lost"
LARGE = b"large"
TAKEN = b"taken"
# Of tasks.
ABSENT = b"absent"
WRONG = b"wrong"  # the task is in a state that the operation does not change; the state follows
FOREIGN = b"foreign"  # the task is taken by another process, or by another take
DUE = b"due"  # a transition is due that another script must make first
HELD = b"held"  # another task holds the unique key
CHANGED = b"changed"  # the data changed since the caller read it

# A reader has items reserved; in a busy reply, the holder of the role is a reader.
RESERVED = b"reserved"

# The mode of a call at a line, and its turn if it is the first call of an operation.
FIRST = "first"
WAIT = b"wait"  # the caller waits when it cannot be served, and keeps its turn
TRY = b"try"  # serve it if no other client waits; otherwise it calls again in mode wait
NOW = b"now"  # serve it at once or not at all, and give back a role that it held

#: The outcomes, by their statuses.
_OUTCOMES = {one.value.encode(): one for one in Outcome}


def outcome(reply: Reply) -> T:  # type: ignore[type-var]  # the caller knows which statuses come
    """Return the outcome for a reply that is only a status."""
    return _OUTCOMES[reply[0]]  # type: ignore[return-value]


def is_refusal(reply: Reply) -> bool:
    """Tell whether a reply is only a status, and not the one of a request that is done."""
    return reply[0] != DONE and reply[0] in _OUTCOMES
