"""The operations that put items and get them, in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..deadlines import deadline, seconds_left
from ..effects import MORE, AnyOperation, Ask, Operation, T, Until
from ..encoding.large import Large, is_manifest
from ..encoding.sort_keys import decode
from ..engines.contract.items import (
    TAKE_ONE,
    Added,
    DropRejected,
    DropRejectedReply,
    GetRejected,
    GetRejectedReply,
    NotComparable,
    PeekItems,
    PeekItemsReply,
    Placed,
    Purge,
    PurgeReply,
    Put,
    PutReply,
    RequeueRejected,
    RequeueRejectedReply,
    SetAside,
    SetAsideReply,
    Take,
    TakeBack,
    TakeBackReply,
    Taken,
    TakeReply,
    put_one,
)
from ..engines.contract.queues import GetLength, GetLengthReply, IsClosed, IsClosedReply
from ..engines.contract.replies import Closed, Ended, InUse, Missing, NoItem, NoSpace, Outcome
from ..engines.contract.session import ONE_TRY
from ..exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BrokerUnavailable,
    ConsumerInUseError,
    Empty,
    Full,
    PressureError,
    ProducerInUseError,
    ShutDown,
)
from ..exhaustive import assert_never
from .batches import next_items
from .control import ControlOperations
from .large import store, sweep
from .waiting import served, served_after

#: The disciplines in which an item alone says where it is put.
_ORDERLESS = ("fifo", "lifo")
#: The most items that one call looks at; they may be large.
MOST_PEEKED = 100

#: There is no space, or it is for other clients.
NONE_ADDED = Added(0)

#: ``block``, ``timeout`` and ``order`` of most puts.
_WITHOUT_LIMIT = (True, None, b"")


def _added(reply: PutReply) -> Any:
    return None if type(reply) is Added else MORE


def _if_added(reply: PutReply) -> Added:
    return reply if type(reply) is Added else MORE


def _first_item(reply: TakeReply) -> bytes:
    return reply.items[0] if type(reply) is Taken else MORE


class ItemOperations(ControlOperations):
    """The operations of every queue of items, in whatever order it serves them."""

    def put(
        self,
        item: bytes | Large,
        block: bool,
        timeout: float | None,
        overfill: bool = False,
        order: bytes = b"",
    ) -> AnyOperation[None]:
        """Add ``item``; waits for its turn and for space.

        ``order`` says where it belongs: of a priority queue its priority, of a fair queue the key's
        weight and the key.

        Raises ShutDown; Full or ProducerInUseError when the time is up; ArgumentTypeError for a
        priority that has no order among the priorities that are queued.
        """
        if isinstance(item, Large):
            return self._put_large(item, block, timeout, overfill, order)
        if timeout is None and block and not order:  # as most puts are
            return Ask(
                put_one(item, (), overfill, True), None, _added, self._put_on, _WITHOUT_LIMIT
            )
        waits = block and (timeout is None or timeout > 0)
        request = put_one(item, (order,) if order else (), overfill, waits)
        end = None if timeout is None or not waits else deadline(True, timeout)
        return Ask(request, end, _added, self._put_on, (block, timeout, order))

    def _put_on(self, ask: Ask[None], reply: PutReply) -> Operation[None]:
        block, timeout, order = ask.how
        reply = yield from served_after(reply, ask.request, ask.end)
        if type(reply) is not Added:
            raise (yield from self._not_put(reply, block, timeout, order))

    def _put_large(
        self, item: Large, block: bool, timeout: float | None, overfill: bool, order: bytes
    ) -> Operation[None]:
        end = deadline(block, timeout)
        if not (block or overfill):
            stats = yield from self.stats()
            if 0 < stats.maxsize <= stats.length:  # a content is not sent in vain
                raise (yield from self._full(NoSpace(stats.length), False, None))
        request = Put((item.manifest,), (order,) if order else (), overfill, has_content=True)
        reply: PutReply = Outcome.LOST
        try:
            while reply is Outcome.LOST:  # the lease of its content ended
                stored = yield from store(item, end)
                if stored is not Outcome.DONE:
                    raise self._refusal(stored)
                reply = yield from served(request, block, seconds_left(end))
            if type(reply) is not Added:
                raise (yield from self._not_put(reply, block, timeout, order))
        except BrokerUnavailable:
            raise  # whether it is queued is not known; if not, its lease ends
        except PressureError:
            yield from sweep(item.token)
            raise

    def put_many(
        self,
        items: Sequence[bytes | Large],
        block: bool,
        timeout: float | None,
        orders: Sequence[bytes] = (),
    ) -> Operation[None]:
        """Add ``items``, in batches, in order; waits for its turn and for space.

        ``orders`` has the order of each item, in a discipline that has any.

        Raises what ``put`` does. Then the error's ``accepted`` is how many items are in the queue.
        """
        end = deadline(block, timeout)
        accepted = 0
        try:
            while accepted < len(items):
                left = seconds_left(end)
                item = items[accepted]
                if isinstance(item, Large):
                    order = orders[accepted] if orders else b""
                    yield from self._put_large(item, block, left, False, order)
                    accepted += 1
                else:
                    batch = next_items(items, accepted)
                    some = orders[accepted : accepted + len(batch)]
                    accepted += yield from self._put_batch(batch, some, block, timeout, left)
        except PressureError as error:
            error.accepted = accepted
            raise

    def put_batch(self, batch: Sequence[bytes], block: bool) -> Operation[Added]:
        """Add the first items of a batch, as many as there is space for; return how many. With
        ``block`` wait for space for one item, without limit; else it may add none. Raises what
        ``put`` does, except Full."""
        reply: PutReply = yield from served(Put(batch), block, None)
        if type(reply) is Added:
            return reply
        if type(reply) in (NoSpace, InUse):
            return NONE_ADDED
        raise (yield from self._not_put(reply, block, None, b""))

    def put_first(self, item: bytes) -> Ask[Added]:
        """Add one item if there is space, as ``put_batch`` does."""
        return Ask(put_one(item, (), False, False), None, _if_added, self._put_first_on)

    def _put_first_on(self, ask: Ask[Added], reply: PutReply) -> Operation[Added]:
        if type(reply) in (NoSpace, InUse):
            return NONE_ADDED
        raise (yield from self._not_put(reply, False, None, b""))

    def _put_batch(
        self,
        batch: Sequence[bytes],
        orders: Sequence[bytes],
        block: bool,
        timeout: float | None,
        left: float | None,
    ) -> Operation[int]:
        """Add the first items of a batch, one at least; wait for the seconds ``left`` of
        ``timeout``."""
        reply: PutReply = yield from served(Put(batch, orders), block, left)
        if type(reply) is not Added:
            raise (yield from self._not_put(reply, block, timeout, orders[0] if orders else b""))
        return reply.number

    def _not_put(
        self, reply: PutReply, block: bool, timeout: float | None, order: bytes
    ) -> Operation[PressureError]:
        match reply:
            case NoSpace() | InUse():
                return (yield from self._full(reply, block, timeout))
            case NotComparable():
                return ArgumentTypeError(
                    f"queue {self.name!r} has an item of the priority {decode(reply.other)!r}, "
                    f"with which Python cannot compare {decode(order)!r}"
                )
            case Outcome.CLOSED:
                error = self._shut_down()
                with suppress(PressureError):  # otherwise it is not known
                    drops: IsClosedReply = yield Until(IsClosed(immediate=True), ONE_TRY)
                    error.immediate = self._found(drops)
                return error
            case Outcome.MISSING:
                return self._missing()
            case Added() | Outcome.LOST:
                raise AssertionError(f"{reply} was dealt with")
            case _:
                assert_never(reply)

    def _full(self, reply: NoSpace | InUse, block: bool, timeout: float | None) -> Operation[Full]:
        why = yield from self._why("put", block, timeout)
        if type(reply) is NoSpace:
            error = Full(f"queue {self.name!r} is full{why}")
            error.current_size = reply.length
            return error
        error = ProducerInUseError(f"queue {self.name!r} has another producer at work{why}")
        try:
            # The time is up: a broker that is lost just now is not waited for.
            length: GetLengthReply = yield Until(GetLength(), ONE_TRY)
            error.current_size = self._found(length)
        except PressureError:
            pass  # it is not known
        return error

    def get(self, block: bool, timeout: float | None, eof: bool = False) -> Ask[bytes]:
        """Take the next item; waits for its turn and for an item.

        Raises ShutDown when the queue is closed and empty, with ``eof`` also when every producer
        that registered has ended; Empty or ConsumerInUseError when the time is up.
        """
        return self._getting(block, timeout, eof, _first_item, self._get_on)

    def _getting(
        self,
        block: bool,
        timeout: float | None,
        eof: bool,
        read: Callable[[TakeReply], T],
        rest: Callable[[Ask[T], TakeReply], Operation[T]],
    ) -> Ask[T]:
        waits = block and (timeout is None or timeout > 0)
        request = TAKE_ONE if waits and not eof else Take(1, None, eof, waits)
        end = None if timeout is None or not waits else deadline(True, timeout)
        return Ask(request, end, read, rest, (block, timeout))

    def _get_on(self, ask: Ask[bytes], reply: TakeReply) -> Operation[bytes]:
        reply = yield from served_after(reply, ask.request, ask.end)
        if type(reply) is not Taken:
            raise (yield from self._not_got(reply, *ask.how))
        return reply.items[0]

    def get_many(
        self, limit: int, block: bool, timeout: float | None, eof: bool = False
    ) -> Operation[list[bytes]]:
        """Take the oldest items, up to ``limit`` and to what one call may take; waits for its turn
        and for one item. Raises what ``get`` does."""
        reply: TakeReply = yield from served(Take(limit, None, eof), block, timeout)
        if type(reply) is not Taken:
            raise (yield from self._not_got(reply, block, timeout))
        return reply.items

    def take_back(self, taken: TakeBack) -> Operation[None]:
        """Undo a call that took items out, by the request that its session made for that."""
        reply: TakeBackReply = yield taken
        self._found(reply)

    def _not_got(
        self,
        reply: Taken | NoItem | InUse | Closed | Ended | Missing,
        block: bool,
        timeout: float | None,
    ) -> Operation[PressureError]:
        match reply:
            case NoItem():
                why = yield from self._why("get", block, timeout)
                return Empty(f"queue {self.name!r} is empty{why}")
            case InUse():
                why = yield from self._why("get", block, timeout)
                return ConsumerInUseError(f"queue {self.name!r} has another consumer at work{why}")
            case Outcome.CLOSED | Outcome.ENDED | Outcome.MISSING:
                return self._refusal(reply)
            case Taken():
                raise AssertionError("items that were taken were dealt with")
            case _:
                assert_never(reply)

    def reject(self, item: bytes) -> Operation[None]:
        """Set aside an item that was got; it counts as dealt with."""
        reply: SetAsideReply = yield SetAside(item)
        self._found(reply)

    def rejected(self, limit: int) -> Operation[list[bytes]]:
        """Return up to ``limit`` of the items that were set aside, oldest first."""
        reply: GetRejectedReply = yield GetRejected(limit)
        return self._found(reply)

    def requeue_rejected(self, item: bytes) -> Operation[bool]:
        """Put an item again that was set aside; return whether one like it was. Raises ShutDown,
        and ArgumentError for a discipline in which an item does not say where it belongs."""
        if self.discipline not in _ORDERLESS:
            raise ArgumentError(
                f"queue {self.name!r} ({self.discipline}) cannot take back items that were set "
                "aside: where an item belonged is not kept. Put it again by the program that made "
                "it, or drop it"
            )
        reply: RequeueRejectedReply = yield RequeueRejected(item)
        if reply is Outcome.CLOSED:
            raise self._shut_down()
        return self._found(reply) is Outcome.DONE

    def drop_rejected(self, item: bytes) -> Operation[bool]:
        """Remove an item that was set aside, and its content; return whether one like it was."""
        reply: DropRejectedReply = yield DropRejected(item)
        is_dropped = self._found(reply) is Outcome.DONE
        if is_dropped and is_manifest(item):
            yield from sweep()
        return is_dropped

    def peek_items(self, limit: int) -> Operation[list[bytes]]:
        """Return up to ``limit`` of the next items, which stay queued."""
        found: list[bytes] = []
        while len(found) < limit:
            number = min(limit - len(found), MOST_PEEKED)
            some = yield from self.peek_placed(number, len(found))
            found += (placed.item for placed in some)
            if len(some) < number:
                break
        return found

    def peek_placed(self, limit: int, start: int = 0) -> Operation[list[Placed]]:
        """Return up to ``limit`` of the next items with where each belongs, at most
        ``MOST_PEEKED``."""
        reply: PeekItemsReply = yield PeekItems(start, min(limit, MOST_PEEKED))
        return self._found(reply)

    def purge(self, block: bool, timeout: float | None) -> Operation[int]:
        """Drop all items that are queued, which count as dealt with; return how many there were.
        Waits for another implementation that is at work. Raises QueueInUseError when the time is
        up."""
        reply: PurgeReply = yield from served(Purge(), block, timeout)
        if isinstance(reply, InUse):
            raise (yield from self._in_use(reply, block, timeout))
        number = self._found(reply)
        if number:
            yield from sweep()
        return number

    def _refusal(self, reply: Closed | Ended | Missing) -> PressureError:
        if reply is Outcome.CLOSED:
            return self._shut_down()
        if reply is Outcome.ENDED:
            return ShutDown(f"queue {self.name!r} is empty and all its producers have ended")
        return self._missing()
