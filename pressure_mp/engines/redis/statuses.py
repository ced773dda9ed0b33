"""What scripts return: a status, then values that depend on it; each script's header says which."""

from __future__ import annotations

from typing import Any

#: A status, then values that depend on it.
Reply = list[Any]

DONE = b"done"
EMPTY = b"empty"
FULL = b"full"
BUSY = b"busy"
CLOSED = b"closed"
MISSING = b"missing"
EXISTS = b"exists"
MISMATCH = b"mismatch"
EXCESS = b"excess"
UNFINISHED = b"unfinished"
ENDED = b"ended"  # closed too, but because every producer has ended
RENEWED = b"renewed"
PASSED = b"passed"
LATE = b"late"
DECLINED = b"declined"
UNORDERED = b"unordered"
LOST = b"lost"
LARGE = b"large"
SHARED = b"shared"
TAKEN = b"taken"
# Of tasks.
ABSENT = b"absent"
WRONG = b"wrong"  # in a state that the operation does not take it out of; the state follows
FOREIGN = b"foreign"  # taken, but not by the caller, or not any more
DUE = b"due"  # the time has come of something that another script is to see to
CHANGED = b"changed"  # since the caller read the data

# A reader has items reserved; and whose the role is that a busy reply names, then.
RESERVED = b"reserved"

# How a call takes part in a queue's line: its mode, and its turn if it is an operation's first.
FIRST = "first"
WAIT = b"wait"  # the caller will park when it cannot be served, and keeps its turn
TRY = b"try"  # serve it if it passes nobody who waits; else it comes again, in mode wait
NOW = b"now"  # serve it at once or not at all; a role it held goes back
