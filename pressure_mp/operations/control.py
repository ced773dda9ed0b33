"""The operations that open, inspect, change and end a queue of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..deadlines import deadline, seconds_left, shown
from ..effects import Operation, Until, Wait
from ..engines.contract.queues import (
    Close,
    CloseReply,
    CountDone,
    CountDoneReply,
    Delete,
    DeleteReply,
    Existing,
    Exists,
    GetLength,
    GetLengthReply,
    GetStats,
    GetStatsReply,
    How,
    Inspect,
    InspectReply,
    Join,
    JoinReply,
    Mismatch,
    Open,
    Opened,
    OpenReply,
    SetBound,
    SetBoundReply,
    Stats,
    Unlock,
    UnlockReply,
)
from ..engines.contract.replies import InUse, Outcome, Unfinished
from ..engines.contract.session import ONE_TRY
from ..exceptions import (
    PressureError,
    QueueAlreadyExistsError,
    QueueInUseError,
    ShutDown,
    TaskDoneError,
)
from ..exhaustive import assert_never
from .large import sweep
from .queues import QueueOperations
from .waiting import served

if TYPE_CHECKING:  # few programs ever ask for it
    from .diagnosis import Diagnosis

FIFO = "fifo"

#: How many waiting clients a diagnosis looks at, and how many the text of an error.
_MANY, _FEW = 1000, 64


class ControlOperations(QueueOperations):
    """The operations of a queue of items, except putting and getting."""

    def open(
        self, how: How, maxsize: int, user: str = "", is_stated: bool = True
    ) -> Operation[int]:
        """Create the queue, attach to it, or either.

        Returns the queue's bound, which has to be ``maxsize`` if that is not 0 and was stated by
        the program. ``user`` is the process to note as a user of an anonymous queue. Raises
        QueueAlreadyExistsError, QueueDoesNotExistError, QueueMismatchError.
        """
        reply: OpenReply = yield Open(how, maxsize, user)
        match reply:
            case Opened():
                if is_stated and maxsize not in (0, reply.bound):
                    raise self._mismatch("maxsize", str(reply.bound), maxsize)
                return reply.bound
            case Existing():
                raise QueueAlreadyExistsError(
                    f"queue {self.name!r} exists already, with maxsize {reply.bound}"
                )
            case Mismatch():
                raise self._mismatch(*reply)
            case Outcome.MISSING:
                raise self._missing()
            case _:
                assert_never(reply)

    def length(self) -> Operation[int]:
        """Return how many items are queued."""
        reply: GetLengthReply = yield GetLength()
        return self._found(reply)

    def stats(self) -> Operation[Stats]:
        """Return all counts, at one moment."""
        reply: GetStatsReply = yield GetStats()
        return self._found(reply)

    def may_get(self) -> Operation[bool]:
        """Tell in one try whether a get would return at once: there is an item, or none will
        come."""
        reply: GetStatsReply = yield Until(GetStats(), ONE_TRY)
        stats = self._found(reply)
        return bool(stats.length) or stats.closed

    def set_bound(self, maxsize: int) -> Operation[None]:
        """Change the bound; 0 is none. Items over it stay."""
        reply: SetBoundReply = yield SetBound(maxsize)
        self._found(reply)

    def task_done(self) -> Operation[None]:
        """Count one item as dealt with. Raises TaskDoneError when none is unfinished."""
        reply: CountDoneReply = yield CountDone()
        if self._found(reply) is Outcome.EXCESS:
            raise self._excess()

    def _excess(self) -> TaskDoneError:
        return TaskDoneError(f"task_done() called too many times on queue {self.name!r}")

    def join(self, timeout: float | None = None) -> Operation[bool]:
        """Wait until every item that was put is dealt with; False when the time was up first."""
        end = deadline(True, timeout)
        while True:
            reply: JoinReply = yield Until(Join(), end)
            match reply:
                case Outcome.DONE:
                    return True
                case Outcome.MISSING:
                    raise self._missing()
                case Unfinished():
                    left = seconds_left(end)
                    if left is not None and left <= 0:
                        return False
                    yield Wait(reply, left)
                case _:
                    assert_never(reply)

    def close(
        self, block: bool, timeout: float | None, once: bool, immediate: bool = False
    ) -> Operation[None]:
        """Close the queue for all processes; waits while another implementation is at work.

        With ``once`` a closed queue is an error, ShutDown. With ``immediate`` the queued items are
        dropped and count as done. Raises QueueInUseError when the time is up.
        """
        reply: CloseReply = yield from served(Close(once, immediate), block, timeout)
        match reply:
            case Outcome.DONE:
                if immediate:
                    yield from sweep()
            case InUse():
                raise (yield from self._in_use(reply, block, timeout))
            case Outcome.CLOSED:
                raise self._shut_down()
            case Outcome.MISSING:
                raise self._missing()
            case _:
                assert_never(reply)

    def delete(self, block: bool, timeout: float | None) -> Operation[None]:
        """Remove the queue; waits while clients of other implementations are at work.

        Raises QueueInUseError when the time is up. After a wait, other clients see the queue no
        longer even then; a second call goes on where this one stopped.
        """
        reply: DeleteReply = yield from served(Delete(), block, timeout)
        match reply:
            case Outcome.DONE:
                pass
            case InUse():
                raise (yield from self._in_use(reply, block, timeout))
            case Outcome.MISSING:
                raise self._missing()
            case _:
                assert_never(reply)

    def unlock(self, role: str) -> Operation[str | None]:
        """Take ``role`` from the client that has it; return that client, None when the role was
        free."""
        reply: UnlockReply = yield Unlock("producer" if role == "producer" else "consumer")
        if reply == "" and not (yield Exists()):  # an engine without roles does not look
            raise self._missing()
        return self._found(reply) or None

    def why_blocked(self) -> Operation[Diagnosis]:
        """Return what a put and a get would wait for at this moment, and which clients are in the
        way."""
        from .diagnosing import diagnose
        from .diagnosis_in_flight import find_owners

        reply: InspectReply = yield Inspect(_MANY)
        seen = self._found(reply)
        return diagnose(self.name, seen, (yield from find_owners()))

    def _why(self, side: str, block: bool, timeout: float | None) -> Operation[str]:
        """Return the end of an error's text: after a wait, what was in the way."""
        if not (block and timeout):
            return ""
        from .diagnosing import diagnose

        try:
            # The time is up: a broker that is lost just now is not waited for.
            reply: InspectReply = yield Until(Inspect(_FEW), ONE_TRY)
            why = diagnose(self.name, self._found(reply)).explain(side)
        except PressureError as error:
            why = f"it is not known why: {error}"
        return f", still after {shown(timeout)}: {why}"

    def _in_use(
        self, reply: InUse, block: bool, timeout: float | None
    ) -> Operation[QueueInUseError]:
        side = {"producer": "put", "consumer": "get"}[reply.role]
        why = yield from self._why(side, block, timeout)
        return QueueInUseError(f"queue {self.name!r} has another {reply.role} at work{why}")

    def _shut_down(self) -> ShutDown:
        return ShutDown(f"queue {self.name!r} is shut down")
