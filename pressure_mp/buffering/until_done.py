"""Fetches ahead from a JoinableQueue, whose items stay in flight until ``task_done()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import interrupts
from ..deadlines import seconds_left
from ..drivers import noting
from ..effects import Operation
from ..exceptions import Empty, PressureError, QueueDoesNotExistError, ShutDown
from ..identity.processes import incarnation
from ..in_flight import Claim
from ..operations.deliveries import Delivery
from .incoming import Incoming, decoded

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from ..handles.objects import ObjectAttachment
    from ..in_flight import InFlight


class _Pair(tuple[Any, int]):
    """An item and its number: told from an item, which may be any tuple."""

    __slots__ = ()


class IncomingUntilDone(Incoming):
    """Fetches from a JoinableQueue: an item that is handed out stays in flight until
    ``task_done()``."""

    _in_flight: InFlight
    _presence: Presence

    def reset(self) -> None:
        super().reset()
        self._call = 0  # the last one that is known to be answered

    @property
    def holds(self) -> bool:
        return bool(self._ahead or self._raw or self._back)

    def _hand_out(self) -> Any:
        for one in self._pops:
            item, seq = one
            try:
                self._in_flight.add(seq)
                return item
            except BaseException:
                interrupts.abandoned += [(self, [_Pair(one)])]
                interrupts.settle()
                raise
        raise IndexError

    def _undo(self, item: Any) -> Any:
        pair = item if type(item) is _Pair else (item, self._in_flight.last())
        self._in_flight.discard(pair[1])
        return pair

    def _decode_next(self, queue: ObjectAttachment) -> None:
        delivery = self._raw[0]
        self._in_flight.add(delivery.seq)
        try:
            accepting = queue.operations.accept(delivery.item, delivery.seq, self._presence)
            item = queue.run_at_once(accepting)
        except PressureError:
            del self._raw[0]
            raise
        finally:
            self._in_flight.discard(delivery.seq)
        self._ahead += ((item, delivery.seq),)
        del self._raw[0]

    def _fetch(
        self, queue: ObjectAttachment, presence: Presence, block: bool, end: float | None
    ) -> bool:
        self._in_flight, self._presence = presence.in_flight, presence

        def run(operation: Operation[list[Delivery]]) -> list[Delivery]:
            return queue.run_at_once(noting(operation, self._note), queue.while_open)

        claim = Claim()
        try:
            deliveries = presence.take_ahead(
                run, self._size, block, seconds_left(end), queue.eof, self._name, claim
            )
            seqs = [delivery.seq for delivery in deliveries]
            self._in_flight.came(seqs)
            objects = decoded(queue, [delivery.item for delivery in deliveries])
            raw = [] if objects is not None else deliveries
            ready = list(zip(objects or (), seqs, strict=False))
            # All of it, or nothing: there is no call.
            self._call = claim.call
            self._ahead += ready
            self._raw += raw
            return True
        except (Empty, ShutDown, QueueDoesNotExistError):
            raise
        except BaseException:
            if self._call != claim.call:
                interrupts.abandoned += [(presence.lease, claim)]
                interrupts.settle()
            raise

    def _report(self, presence: Presence) -> None:
        # What was handed out, task_done() tells.
        if not presence.lease.run_now(presence.operations.handed(self._name, self._call, 0)):
            self._drain()
            self._back = []

    def _return(self, presence: Presence, run: Run[bool]) -> None:
        self._drain()
        if self._back:
            seqs = [one.seq if type(one) is Delivery else one[1] for one in self._back]
            run(presence.operations.requeue(incarnation(), seqs=seqs))
        self._back = []
        run(presence.operations.put_back(self._name, self._call, 0))
        self._forget()

    def _forget(self) -> None:
        self._back = []
        self._returns = False
