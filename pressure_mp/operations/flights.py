"""Items in flight, and the processes that answer for them or that produce."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..effects import DONE, EXCESS, LATE, PASSED, RENEWED, Call, Operation, Reply
from ..exceptions import TaskDoneError
from .fifo import FifoOperations
from .large import sweep
from .turns import take_turns, wake

#: A field beside the producers: there was ever one.
_EVER = "ever"


class Flight(NamedTuple):
    """An item in flight: its number, its bytes, and in which of its owner's calls it was taken."""

    seq: int
    item: bytes
    call: int = 0


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
        """Take the oldest item, which is in flight from now on; waits as ``get`` does.

        ``call`` is a number that the owner never used before. After ``limit`` deliveries the
        item is set aside instead of being put back; 0 is no limit. With ``eof`` the end of all
        producers is the end of the queue only when no other process has an item in flight.
        """
        args = (owner, call, limit, int(eof))
        reply = yield from take_turns("take", args, block, timeout, self._lease)
        if reply[0] != DONE:
            raise (yield from self._not_got(reply, block, timeout))
        return Flight(int(reply[1]), reply[2], call)

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
        self, owner: str, seen: int | None = None, call: int | None = None
    ) -> Operation[bool]:
        """Put back to the front, in order, what ``owner`` has in flight.

        With ``seen`` only if its lease still ends then; the answer is whether it does. With
        ``call`` only what it took in that call.
        """
        args = (owner, "" if seen is None else seen, "" if call is None else call)
        reply: Reply = yield Call("requeue", args)
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
