"""The operations of every queue of items, in bytes: first those of the pressure protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..effects import (
    BUSY,
    CLOSED,
    DONE,
    EMPTY,
    ENDED,
    EXCESS,
    EXISTS,
    FULL,
    INCOMPLETE,
    LOST,
    MISMATCH,
    MISSING,
    ONE_TRY,
    UNFINISHED,
    UNORDERED,
    Call,
    Operation,
    Reply,
)
from ..exceptions import (
    ArgumentTypeError,
    BrokerUnavailable,
    ConsumerInUseError,
    Empty,
    Full,
    IncompleteQueueError,
    PressureError,
    ProducerInUseError,
    QueueAlreadyExistsError,
    QueueDoesNotExistError,
    QueueInUseError,
    ShutDown,
    TaskDoneError,
)
from ..large import Large, Manifest
from ..ordering import decode
from .batches import MOST_BYTES, MOST_ITEMS, next_batch
from .diagnosis import Diagnosis, diagnose
from .large import fetch, store, sweep
from .queues import QueueOperations
from .roles import Rounds, free_roles
from .turns import Shortcut, deadline, take_turns, time_left, until_finished, wake

FIFO = "fifo"
FORMAT = "1"

#: How many of those who stand in line a diagnosis looks at, and the text of an error.
_MANY, _FEW = 1000, 64


class Stats(NamedTuple):
    """A queue at one moment. ``producer`` and ``consumer`` last put and got, or wait to do so.

    ``in_flight`` items were got from a JoinableQueue and are not yet acknowledged, or were fetched
    ahead and are not known to be handed out; they count as consumed, and as unfinished.
    """

    length: int
    maxsize: int
    closed: bool
    produced_messages: int
    produced_bytes: int
    consumed_messages: int
    consumed_bytes: int
    producer: str | None
    consumer: str | None
    unfinished: int
    rejected: int
    in_flight: int


class FifoOperations(QueueOperations):
    """The operations of every queue of items, in whatever order it serves them."""

    def __init__(self, name: str, lease: int, discipline: str = FIFO) -> None:
        super().__init__(name, lease, discipline)
        self._rounds = Rounds(lease)
        #: The short ways of ``put`` and ``get``, of queues that have any.
        self.offer: Shortcut | None = None
        self.poll: Shortcut | None = None
        if discipline == FIFO:
            self.offer = Shortcut("offer", takes=1)
            self.poll = Shortcut("poll", takes=0, waiting=Shortcut("stand_by", takes=0))

    def open(
        self, how: str, maxsize: int, user: str = "", is_stated: bool = True
    ) -> Operation[int]:
        """Create (``how="create"``), attach (``"attach"``), or either (``"open"``).

        Answers the queue's bound, which is to be ``maxsize``, if that is not 0 and somebody stated
        it. ``user`` is the process to note as a user of an anonymous
        queue. Raises QueueAlreadyExistsError, QueueDoesNotExistError, QueueMismatchError.
        """
        reply: Reply = yield Call("open", (how, maxsize, self.discipline, FORMAT, user))
        if reply[0] == EXISTS:
            raise QueueAlreadyExistsError(
                f"queue {self.name!r} exists already, with maxsize {int(reply[1])}"
            )
        if reply[0] == MISMATCH:
            wanted = {b"format": FORMAT}.get(reply[1], self.discipline)
            raise self._mismatch(reply[1].decode(), reply[2].decode(errors="replace"), wanted)
        bound = int(self._check(reply)[1])
        if is_stated and maxsize not in (0, bound):
            raise self._mismatch("maxsize", str(bound), maxsize)
        return bound

    def length(self) -> Operation[int]:
        """How many items are queued."""
        reply: Reply = yield Call("length")
        length = int(self._check(reply)[1])
        yield from self.look_after_roles()
        return length

    def look_after_roles(self) -> Operation[None]:
        """Free, once a second at most, the roles of clients of this host that have ended."""
        return self._rounds.make()

    def may_get(self) -> Operation[bool]:
        """Whether a get would not wait: there is an item, or none will come any more. One try."""
        reply: Reply = yield Call("stats", (), 0.0)
        _, length, closed, *_ = self._check(reply)[1:]
        return bool(int(length) or int(closed))

    def closed(self) -> Operation[bool]:
        """Whether the queue was closed."""
        reply: Reply = yield Call("closed")
        return bool(self._check(reply)[1])

    def stats(self) -> Operation[Stats]:
        """Everything that can be counted, at one moment."""
        reply: Reply = yield Call("stats")
        *numbers, producer, consumer = self._check(reply)[1:]
        bound, length, closed, put, put_bytes, got, got_bytes, *tasks = map(int, numbers)
        unfinished, rejected, in_flight = tasks
        yield from self.look_after_roles()
        return Stats(
            length=length,
            maxsize=bound,
            closed=bool(closed),
            produced_messages=put,
            produced_bytes=put_bytes,
            consumed_messages=got,
            consumed_bytes=got_bytes,
            producer=producer and producer.decode(errors="replace"),
            consumer=consumer and consumer.decode(errors="replace"),
            unfinished=unfinished,
            rejected=rejected,
            in_flight=in_flight,
        )

    def put(
        self,
        item: bytes | Large,
        block: bool,
        timeout: float | None,
        overfill: bool = False,
        order: bytes = b"",
    ) -> Operation[None]:
        """Add ``item``; waits for the producer role and for space.

        ``order`` is where it belongs, as the discipline wants to know it: of a priority queue its
        priority, of a fair one its key's weight and its key.

        Raises ShutDown; Full or ProducerInUseError when the time is up; ArgumentTypeError for a
        priority that has no order among those that are queued.
        """
        if type(item) is Large:
            yield from self._put_large(item, block, timeout, overfill, order)
            return
        args, shortcut = (item, int(overfill), order, 0), None if overfill else self.offer
        reply = yield from take_turns("put", args, block, timeout, self._lease, shortcut)
        if reply[0] != DONE:
            raise (yield from self._not_put(reply, block, timeout, order))

    def _put_large(
        self, item: Large, block: bool, timeout: float | None, overfill: bool, order: bytes
    ) -> Operation[None]:
        end = yield from deadline(block, timeout)
        if not (block or overfill):
            stats = yield from self.stats()
            if 0 < stats.maxsize <= stats.length:  # nothing is sent in vain
                raise (yield from self._no_space([FULL, b"space", stats.length], False, None))
        queued = [LOST]
        try:
            while queued[0] == LOST:  # nobody heard of this process for a lease
                self._check((yield from store(item, self._lease, end)))
                left = yield from time_left(end)
                args = (item.manifest, int(overfill), order, 1)
                queued = yield from take_turns("put", args, block, left, self._lease)
            if queued[0] != DONE:
                raise (yield from self._not_put(queued, block, timeout, order))
        except BrokerUnavailable:
            raise  # whether it is queued is not known; if not, its lease ends
        except PressureError:
            yield from sweep(item.token)
            raise

    def fetch(self, manifest: Manifest) -> Operation[list[bytearray] | None]:
        """Read the content that belongs to an item that was got, or only looked at.

        Answers its segments; None when it is gone: somebody else got the item, or this process
        was stopped for very long.
        """
        segments = yield from fetch(manifest, self._lease)
        return segments

    def let_go(self, manifest: Manifest) -> Operation[None]:
        """The content of an item that was got for good is needed no longer."""
        yield from sweep(manifest.token)

    def put_many(
        self,
        items: Sequence[bytes | Large],
        block: bool,
        timeout: float | None,
        orders: Sequence[bytes] = (),
    ) -> Operation[None]:
        """Add ``items``, in batches, in order; waits for the producer role and for space.

        ``orders`` are theirs, in a discipline that wants any.

        Raises what ``put`` does. Then the error's ``accepted`` is how many items are in the queue.
        """
        end = yield from deadline(block, timeout)
        accepted = 0
        try:
            while accepted < len(items):
                left = yield from time_left(end)
                accepted += yield from self._put_some(items, accepted, orders, block, timeout, left)
        except PressureError as error:
            error.accepted = accepted
            raise

    def _put_some(
        self,
        items: Sequence[bytes | Large],
        start: int,
        orders: Sequence[bytes],
        block: bool,
        timeout: float | None,
        left: float | None,
    ) -> Operation[int]:
        """Add as many of the items from ``start`` on as go in one call; answers how many."""
        item = items[start]
        if type(item) is Large:
            yield from self._put_large(item, block, left, False, b"")
            return 1
        return (yield from self._put_batch(next_batch(items, start), block, timeout, left))

    def put_batch(self, batch: Sequence[bytes]) -> Operation[int]:
        """Add the first items of a batch, as many as there is space for, and one at least; answers
        how many. Waits without limit, and raises what ``put`` does."""
        return self._put_batch(batch, True, None, None)

    def _put_batch(
        self, batch: Sequence[bytes], block: bool, timeout: float | None, left: float | None
    ) -> Operation[int]:
        """The same; waits for what is ``left`` of ``timeout`` seconds."""
        args = (len(batch), *batch)
        reply = yield from take_turns("put_many", args, block, left, self._lease)
        if reply[0] != DONE:
            raise (yield from self._not_put(reply, block, timeout))
        return int(reply[1])

    def _not_put(
        self, reply: Reply, block: bool, timeout: float | None, order: bytes = b""
    ) -> Operation[PressureError]:
        if reply[0] in (FULL, BUSY):
            return (yield from self._no_space(reply, block, timeout))
        if reply[0] == UNORDERED:
            return ArgumentTypeError(
                f"queue {self.name!r} has an item of the priority {decode(reply[1])!r}, with which "
                f"Python cannot compare {decode(order)!r}"
            )
        return self._refusal(reply)

    def _no_space(self, reply: Reply, block: bool, timeout: float | None) -> Operation[Full]:
        why = yield from self._why("put", block, timeout)
        if reply[0] == FULL:
            error = Full(f"queue {self.name!r} is full{why}")
            error.current_size = int(reply[2])
        else:
            error = ProducerInUseError(f"queue {self.name!r} has another producer at work{why}")
            try:
                # The time is up: a broker that is lost just now is not waited for.
                length: Reply = yield Call("length", (), ONE_TRY)
                error.current_size = int(self._check(length)[1])
            except PressureError:
                pass  # it is not known
        return error

    def get(self, block: bool, timeout: float | None, eof: bool = False) -> Operation[bytes]:
        """Take the item whose turn it is; waits for the consumer role and for an item.

        Raises ShutDown when the queue is closed and empty, with ``eof`` also when every producer
        that registered has ended; Empty or ConsumerInUseError when the time is up.
        """
        shortcut = None if eof else self.poll
        reply = yield from take_turns("get", (int(eof),), block, timeout, self._lease, shortcut)
        if reply[0] != DONE:
            raise (yield from self._not_got(reply, block, timeout))
        item: bytes = reply[1]
        return item

    def get_many(
        self, limit: int, block: bool, timeout: float | None, eof: bool = False
    ) -> Operation[list[bytes]]:
        """Take the oldest items, up to ``limit`` and to what one call may take; waits for the
        consumer role and for one item. Raises what ``get`` does."""
        args = (min(limit, MOST_ITEMS), MOST_BYTES, int(eof))
        reply = yield from take_turns("get_many", args, block, timeout, self._lease)
        if reply[0] != DONE:
            raise (yield from self._not_got(reply, block, timeout))
        return [item for items in reply[1:] for item in items]

    def take_back(self, *call: object) -> Operation[None]:
        """Undo a call that took items out, in the words of the session that made it."""
        reply: Reply = yield Call("take_back", call)
        self._check(reply)

    def _not_got(
        self, reply: Reply, block: bool, timeout: float | None
    ) -> Operation[PressureError]:
        if reply[0] == EMPTY:
            why = yield from self._why("get", block, timeout)
            return Empty(f"queue {self.name!r} is empty{why}")
        if reply[0] == BUSY:
            why = yield from self._why("get", block, timeout)
            return ConsumerInUseError(f"queue {self.name!r} has another consumer at work{why}")
        return self._refusal(reply)

    def close(
        self, block: bool, timeout: float | None, once: bool, immediate: bool = False
    ) -> Operation[None]:
        """Close the queue for everyone; waits for the producer role while a foreign client has it.

        With ``once`` a closed queue is an error, ShutDown. With ``immediate`` what is queued is
        dropped and counts as done. Raises QueueInUseError when the time is up.
        """
        args = (int(once), int(immediate))
        reply = yield from take_turns("close", args, block, timeout, self._lease)
        if reply[0] == BUSY:
            raise (yield from self._in_use(reply, block, timeout))
        yield from wake(self._check(reply)[1:])
        if immediate:
            yield from sweep()

    def delete(self, block: bool, timeout: float | None) -> Operation[None]:
        """Remove the queue; waits for the roles that foreign clients have.

        Raises QueueInUseError when the time is up. After a wait the queue no longer exists for
        others even then; to delete again goes on where it stopped.
        """
        reply = yield from take_turns("delete", (), block, timeout, self._lease)
        if reply[0] == BUSY:
            raise (yield from self._in_use(reply, block, timeout))
        yield from wake(self._check(reply)[1:])

    def unlock(self, role: str) -> Operation[str | None]:
        """Take ``role`` from whoever has it; answers who that was, None when it was free."""
        reply: Reply = yield Call("unlock", (role,))
        who: bytes = self._check(reply)[1]
        return who.decode(errors="replace") or None

    def set_bound(self, maxsize: int) -> Operation[None]:
        """Change the bound; 0 is none. Items over it stay."""
        reply: Reply = yield Call("set_bound", (maxsize,))
        self._check(reply)

    def task_done(self) -> Operation[None]:
        """Count one item as dealt with. Raises TaskDoneError when none is unfinished."""
        reply: Reply = yield Call("task_done")
        if reply[0] == EXCESS:
            raise TaskDoneError(f"task_done() called too many times on queue {self.name!r}")
        self._check(reply)

    def join(self, timeout: float | None = None) -> Operation[bool]:
        """Wait until every item that was put is dealt with; False when the time was up first."""
        reply = yield from until_finished(timeout, self._lease)
        return bool(self._check(reply)[0] != UNFINISHED)

    def reject(self, item: bytes) -> Operation[None]:
        """Set aside an item that was got; it counts as dealt with."""
        reply: Reply = yield Call("reject", (item, "", ""))
        self._check(reply)

    def rejected(self, limit: int) -> Operation[list[bytes]]:
        """Up to ``limit`` of the items that were set aside, oldest first."""
        reply: Reply = yield Call("rejected", (limit,))
        return list(self._check(reply)[1])

    def why_blocked(self) -> Operation[Diagnosis]:
        """What a put and a get would wait for at this moment, and who is in the way."""
        reply: Reply = yield Call("inspect", (_MANY,))
        diagnosis = yield from diagnose(self.name, self._check(reply), _MANY)
        yield from free_roles(self._lease)
        return diagnosis

    def _why(self, side: str, block: bool, timeout: float | None) -> Operation[str]:
        """The end of the text of an error: after a wait, what was in the way."""
        if not (block and timeout):
            return ""
        try:
            # The time is up: a broker that is lost just now is not waited for.
            reply: Reply = yield Call("inspect", (_FEW,), ONE_TRY)
            diagnosis = yield from diagnose(self.name, self._check(reply), _FEW)
            why = diagnosis.explain(side)
        except PressureError as error:
            why = f"it is not known why: {error}"
        return f", still after {timeout:g} s: {why}"

    def _in_use(
        self, reply: Reply, block: bool, timeout: float | None
    ) -> Operation[QueueInUseError]:
        role = reply[1].decode()
        why = yield from self._why({"producer": "put", "consumer": "get"}[role], block, timeout)
        return QueueInUseError(f"queue {self.name!r} has another {role} at work{why}")

    def _check(self, reply: Reply) -> Reply:
        if reply[0] in (CLOSED, MISSING, INCOMPLETE):
            raise self._refusal(reply)
        return reply

    def _refusal(self, reply: Reply) -> ShutDown | QueueDoesNotExistError | IncompleteQueueError:
        if reply[0] == INCOMPLETE:
            return self._incomplete(reply[1].decode())
        if reply[0] == CLOSED:
            return ShutDown(f"queue {self.name!r} is shut down")
        if reply[0] == ENDED:
            return ShutDown(f"queue {self.name!r} is empty and all its producers have ended")
        return QueueDoesNotExistError(f"queue {self.name!r} does not exist")

    def _incomplete(self, role: str) -> IncompleteQueueError:
        advice = "delete the queue"
        if self.discipline == FIFO:
            advice = f"PressureQueue.unlock({role!r}) puts it back, or delete the queue after that"
        return IncompleteQueueError(
            f"queue {self.name!r} has lost keys: no client has its {role} role, but "
            f"`:{role}_free` is missing. The server removed it, or somebody did; items may be "
            f"missing too. {advice}"
        )
