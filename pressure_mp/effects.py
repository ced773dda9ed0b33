"""What an operation may yield to its driver, and what an engine may answer.

An operation is a generator without I/O. It yields effects; the driver performs them and sends
the answers back in. The driver throws an engine's error into the operation, and whatever ends
a wait early (KeyboardInterrupt, an asyncio cancellation) too, so its ``except`` clauses run.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


#: The ``end`` of a call that is tried once.
ONE_TRY = 0.0


class Call(NamedTuple):
    """Do one atomic thing that never blocks. The answer is a :data:`Reply`.

    An engine that has lost its broker tries again for some time. What was never sent it tries
    until ``end`` at most, which is on the driver's monotonic clock; what was sent it goes on to ask
    for, so that its outcome is known. It never does the thing twice. With :data:`ONE_TRY` nobody
    needs to know what becomes of it.
    """

    op: str
    args: tuple[Any, ...] = ()
    end: float | None = None


class Park(NamedTuple):
    """Wait until trying again may help.

    ``timeout`` is in seconds, None for no limit. The answer is True when the signal came. The
    engine may answer False long before the timeout (it does so about once a second); to yield
    the same signal again then keeps the place in line.
    """

    signal: str
    timeout: float | None


class Now(NamedTuple):
    """The answer is the driver's monotonic clock, in seconds."""


class Gone(NamedTuple):
    """Whether the process of ``who``, a client id or a ticket, has ended: True, False, or None
    when that cannot be known from here."""

    who: str


Effect = Call | Park | Now | Gone

#: An engine's answer to a call: a status, then values that depend on it.
Reply = list[Any]

Operation = Generator[Effect, Any, T]

# The statuses. Each engine answers these and no others.
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
#: Not an engine's: a wait found that a role's token is gone.
INCOMPLETE = b"incomplete"
LARGE = b"large"
# Of tasks.
ABSENT = b"absent"
WRONG = b"wrong"  # in a state that the operation does not take it out of; the state follows
FOREIGN = b"foreign"  # taken, but not by the caller, or not any more
CHANGED = b"changed"  # since the caller read the data

# How a call takes part in a queue's line.
WAIT = b"wait"  # the caller will park when it cannot be served, and keeps its turn
NOW = b"now"  # serve it at once or not at all; a role it held goes back

#: Seconds after which a parked client looks again by itself: a foreign client that closes a
#: queue wakes nobody but the one that blocks on the queue's ``:closed`` list, and a client that
#: is killed wakes nobody at all.
TICK = 0.9
