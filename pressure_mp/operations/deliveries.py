"""Items in flight, and the processes that are responsible for them or that produce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..effects import Operation
from ..engines.contract.items import (
    Acknowledge,
    AcknowledgeReply,
    Attendance,
    EndReservation,
    EndReservationReply,
    HandOut,
    HandOutReply,
    Hold,
    NextIsLarge,
    Prefetch,
    PrefetchReply,
    Renew,
    RenewReply,
    Requeue,
    RequeueReply,
    Reserve,
    ReserveReply,
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

    def prefetch(
        self,
        reader: str,
        call: int,
        number: int,
        block: bool,
        timeout: float | None,
        eof: bool = False,
    ) -> Operation[list[bytes] | None]:
        """Take the oldest items before they are asked for: at most ``number``, what one call may
        take, and the reader's fair share. Waits for an item as ``get`` does. Returns None when the
        next item's content is in chunks: such an item is not taken ahead.

        The rest is as in :class:`Prefetch`.
        """
        request = Prefetch(reader, call, number, eof)
        reply: PrefetchReply = yield from served(request, block, timeout)
        if isinstance(reply, Taken):
            return reply.items
        if isinstance(reply, NextIsLarge):
            return None
        raise (yield from self._not_got(reply, block, timeout))

    def reserve(
        self,
        reader: str,
        call: int,
        handed: int,
        kept: int,
        number: int,
        whole: bool = False,
        out: int = 0,
        size: int = 0,
    ) -> Operation[ReserveReply]:
        """Read up to ``number`` items behind the items that a reader keeps, which stay queued until
        it says how many it handed out. Of a queue with a bound read the ``whole``, or half of it.
        Since its last call the reader handed out ``out`` items, ``size`` bytes. Waits for
        nothing."""
        reply: ReserveReply = yield Reserve(reader, call, handed, kept, number, whole, out, size)
        return reply

    def end_reservation(self, reader: str, call: int, handed: int) -> Operation[int]:
        """Note that the reader handed out so many items in all, and that its last call, if it was
        made, is over. Returns how many of its items count as handed out."""
        reply: EndReservationReply = yield EndReservation(reader, call, handed)
        return reply.number

    def handed(self, reader: str, call: int, number: int) -> Operation[bool]:
        """Note that so many items of a call were handed out, and the reader goes on.

        Returns False when the items were taken away meanwhile.
        """
        reply: HandOutReply = yield HandOut(reader, call, number)
        return self._found(reply) is Outcome.DONE

    def put_back(
        self, reader: str, call: int, number: int, unheard: bool = False
    ) -> Operation[bool]:
        """Put the items of a call back to the front, in order, except the first ``number``, which
        were handed out.

        Returns False when they were taken away meanwhile. ``unheard`` is as in :class:`HandOut`.
        """
        reply: HandOutReply = yield HandOut(reader, call, number, True, unheard)
        return self._found(reply) is Outcome.DONE

    def acknowledge(self, owner: str, seq: int | None) -> Operation[Done | Late | Passed]:
        """Acknowledge an item in flight; without ``seq`` the oldest of the queue, if any is.

        Returns LATE when the item was taken away from this owner, and PASSED when another process
        already acknowledged it: then nothing is counted. Raises TaskDoneError.
        """
        reply: AcknowledgeReply = yield Acknowledge(owner, seq)
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
    ) -> Operation[bool]:
        """Put back to the front, in order, the items that ``owner`` has in flight.

        With ``seen``, only if its lease still ends then; returns whether it does. With ``call``,
        only the items that it took in that call. With ``seqs``, only these items, which no get
        returned: so this was no delivery.
        """
        reply: RequeueReply = yield Requeue(owner, seen, call, seqs)
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
