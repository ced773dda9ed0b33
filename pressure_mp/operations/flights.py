"""Items in flight, and the processes that answer for them or that produce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..effects import DONE, EXCESS, LARGE, LATE, PASSED, RENEWED, Call, Operation, Reply
from ..exceptions import TaskDoneError
from .batches import MOST_BYTES, MOST_ITEMS
from .fifo import FifoOperations
from .large import sweep
from .turns import take_turns, wake

#: A field beside the producers: there was ever one.
_EVER = "ever"


class Flight(NamedTuple):
    """An item in flight: its number, and its bytes."""

    seq: int
    item: bytes


class Attendance(NamedTuple):
    """Who is there, by the broker's clock: the end of each one's lease, in milliseconds."""

    now: int
    consumers: dict[str, int]
    producers: dict[str, int]


class FlightOperations(FifoOperations):
    """A queue whose items stay with the broker until they are acknowledged.

    ``owner`` is the process that answers for an item: see
    :func:`pressure_mp.processes.incarnation`.
    """

    def take(
        self,
        owner: str,
        call: int,
        limit: int,
        block: bool,
        timeout: float | None,
        eof: bool = False,
    ) -> Operation[Flight]:
        """Take the oldest item, as ``take_many`` does."""
        flights = yield from self.take_many(owner, call, limit, 1, block, timeout, eof)
        return flights[0]

    def take_many(
        self,
        owner: str,
        call: int,
        limit: int,
        number: int,
        block: bool,
        timeout: float | None,
        eof: bool = False,
        reader: str = "",
    ) -> Operation[list[Flight]]:
        """Take the oldest items, which are in flight from now on; waits for one as ``get`` does.

        At most ``number`` of them, and what one call may take. ``call`` is a number that the owner
        never used before. After ``limit`` deliveries an item is set aside instead of being put
        back; 0 is no limit. With ``eof`` the end of all producers is the end of the queue only when
        no other process has an item in flight. A ``reader`` takes no more than its fair share; what
        it fetched with ``prefetch``, and is not known to have handed out, stays in flight.
        """
        args = (owner, call, limit, min(number, MOST_ITEMS), MOST_BYTES, reader, int(eof))
        reply = yield from take_turns("take", args, block, timeout, self._lease)
        if reply[0] != DONE:
            raise (yield from self._not_got(reply, block, timeout))
        return list(map(Flight, map(int, reply[1]), reply[2]))

    def prefetch(
        self,
        reader: str,
        call: int,
        number: int,
        block: bool,
        timeout: float | None,
        eof: bool = False,
    ) -> Operation[list[bytes] | None]:
        """Take the oldest items ahead of their need: at most ``number``, what one call may take,
        and the reader's fair share. Waits for one as ``get`` does. None when the next item's
        content is in parts: that is not taken ahead.

        They stay in flight until the reader hands them out. ``call`` is larger than any that the
        reader used before, and says that all of the last call was handed out.
        """
        args = (reader, call, min(number, MOST_ITEMS), MOST_BYTES, int(eof))
        reply = yield from take_turns("prefetch", args, block, timeout, self._lease)
        if reply[0] == LARGE:
            return None
        if reply[0] != DONE:
            raise (yield from self._not_got(reply, block, timeout))
        items: list[bytes] = reply[1]
        return items

    def handed(self, reader: str, call: int, number: int) -> Operation[bool]:
        """So many items of a call were handed out, and the reader goes on.

        False when the items were taken away meanwhile.
        """
        reply: Reply = yield Call("handed", (reader, call, number, self._lease))
        return bool(self._check(reply)[0] == DONE)

    def put_back(self, reader: str, call: int, number: int) -> Operation[bool]:
        """Put back to the front, in order, all of a call but so many that were handed out.

        False when they were taken away meanwhile.
        """
        reply: Reply = yield Call("put_back", (reader, call, number))
        return bool(self._check(reply)[0] == DONE)

    def acknowledge(self, owner: str, seq: int | None) -> Operation[bytes]:
        """An item in flight is dealt with; without ``seq`` the oldest of the queue, if any is.

        Answers DONE; LATE when the item was taken away from this owner, and PASSED when another
        process already said so: then nothing is counted. Raises TaskDoneError.
        """
        reply: Reply = yield Call("acknowledge", (owner, "" if seq is None else seq))
        if reply[0] == EXCESS:
            raise TaskDoneError(f"task_done() called too many times on queue {self.name!r}")
        status: bytes = self._check(reply)[0]
        assert status in (DONE, LATE, PASSED)
        if len(reply) > 2 and reply[2]:  # the item's content, of which some parts are left
            yield from sweep()
        return status

    def set_aside(self, item: bytes, owner: str, seq: int) -> Operation[None]:
        """Reject an item in flight, unless it was taken away from this owner."""
        reply: Reply = yield Call("reject", (item, owner, seq))
        self._check(reply)

    def requeue(
        self,
        owner: str,
        seen: int | None = None,
        call: int | None = None,
        seqs: Sequence[int] = (),
    ) -> Operation[bool]:
        """Put back to the front, in order, what ``owner`` has in flight.

        With ``seen`` only if its lease still ends then; the answer is whether it does. With
        ``call`` only what it took in that call. With ``seqs`` only these items, which nobody was
        given: that was no delivery.
        """
        which = ("" if seen is None else seen, "" if call is None else call)
        reply: Reply = yield Call("requeue", (owner, *which, len(seqs), *seqs))
        return bool(self._check(reply)[0] != RENEWED)

    def renew(self, owner: str, consumes: bool, produces: bool) -> Operation[Attendance]:
        """Renew the owner's lease as one with items in flight, and as a producer; who is there."""
        args = (owner, self._lease, int(consumes), int(produces))
        reply: Reply = yield Call("renew", args)
        _, now, consumers, producers = self._check(reply)
        named = _leases(producers)
        named.pop(_EVER, None)
        return Attendance(int(now), _leases(consumers), named)

    def retire(self, owner: str, seen: int | None = None) -> Operation[bool]:
        """The owner is no longer a producer; with ``seen`` only if its lease still ends then."""
        reply: Reply = yield Call("retire", (owner, "" if seen is None else seen))
        if self._check(reply)[0] == RENEWED:
            return False
        yield from wake(reply[1:])
        return True


def _leases(flat: list[Any]) -> dict[str, int]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {name.decode(errors="replace"): int(until) for name, until in pairs}
