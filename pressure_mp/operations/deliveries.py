"""Items in flight, and the processes that are responsible for them or that produce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..effects import Operation
from ..engines.contract.items import (
    Acknowledge,
    AcknowledgeReply,
    Attendance,
    Hold,
    Prefetch,
    PrefetchReply,
    Renew,
    RenewReply,
    Requeue,
    RequeueReply,
    Retire,
    RetireReply,
    SetAside,
    SetAsideReply,
    Take,
    Taken,
    TakeReply,
)
from ..engines.contract.replies import Done, Late, Outcome, Passed
from .items import ItemOperations
from .waiting import served


class Delivery(NamedTuple):
    """An item in flight: its number, and its bytes."""

    seq: int
    item: bytes


class DeliveryOperations(ItemOperations):
    """A queue whose items stay with the broker until they are acknowledged.

    ``owner`` is the process that is responsible for an item: see
    :func:`pressure_mp.identity.processes.incarnation`.
    """

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
    ) -> Operation[list[Delivery]]:
        """Take the oldest items, which are in flight from now on; waits for one as ``get`` does.

        Takes at most ``number``, and what one call may take. The rest is as in :class:`Hold` and
        :class:`Take`.
        """
        request = Take(number, Hold(owner, call, limit, reader), eof)
        reply: TakeReply = yield from served(request, block, timeout)
        if type(reply) is not Taken:
            raise (yield from self._not_got(reply, block, timeout))
        return list(map(Delivery, reply.numbers, reply.items))

    def prefetch(self, request: Prefetch) -> Operation[PrefetchReply]:
        """Take items before they are needed, or tell how many were handed out; returns the reply.
        Waits for nothing."""
        reply: PrefetchReply = yield request
        return reply

    def acknowledge(self, owner: str, seq: int | None) -> Operation[Done | Late | Passed]:
        """Acknowledge an item in flight; without ``seq`` the oldest of the queue, if any is.

        Returns LATE when the item was taken away from this owner, and PASSED when another process
        already acknowledged it: then nothing is counted. Raises TaskDoneError.
        """
        reply: AcknowledgeReply = yield Acknowledge(owner, seq)
        return self._counted(reply)

    def _counted(self, reply: AcknowledgeReply) -> Done | Late | Passed:
        found = self._found(reply)
        if found is Outcome.EXCESS:
            raise self._excess()
        return found

    def set_aside(self, item: bytes, owner: str, seq: int) -> Operation[None]:
        """Reject an item in flight, unless it was taken away from this owner."""
        reply: SetAsideReply = yield SetAside(item, owner, seq)
        self._found(reply)

    def requeue(
        self,
        owner: str,
        seen: int | None = None,
        call: int | None = None,
        seqs: Sequence[int] = (),
        handed: Sequence[tuple[str, int]] = (),
    ) -> Operation[bool]:
        """Put back to the front, in order, the items that ``owner`` has in flight.

        With ``seen``, only if its lease still ends then; returns whether it does. With ``call``,
        only the items that it took in that call. With ``seqs``, only these items, which no get
        returned: so this was no delivery. ``handed`` is as in :class:`Requeue`.
        """
        reply: RequeueReply = yield Requeue(owner, seen, call, seqs, handed)
        return self._found(reply) is Outcome.DONE

    def renew(self, owner: str, consumes: bool, produces: bool) -> Operation[Attendance]:
        """Renew the owner's lease as a consumer with items in flight, and as a producer; return
        which processes are there."""
        reply: RenewReply = yield Renew(owner, consumes, produces)
        return self._found(reply)

    def retire(self, owner: str, seen: int | None = None) -> Operation[bool]:
        """Note that the owner is no longer a producer; with ``seen`` only if its lease still ends
        then."""
        reply: RetireReply = yield Retire(owner, seen)
        return self._found(reply) is Outcome.DONE
