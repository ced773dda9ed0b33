"""What handles to queues of items share: an item is handed out, or goes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import interrupts
from ..background import presence
from ..background.presence import Presence
from ..effects import Operation, T
from ..engines import registry
from ..engines.contract.queues import How, Stats
from ..exceptions import BrokerUnavailable, PressureError, QueueDoesNotExistError
from ..operations.control import FIFO
from ..operations.items import ItemOperations
from .handles import Handle

if TYPE_CHECKING:
    from ..operations.diagnosis import Diagnosis


class ItemHandle(Handle):
    """A handle to a queue of items, in whatever order it serves them."""

    _operations: ItemOperations

    def _make_operations(self) -> ItemOperations:
        return ItemOperations(self._name, FIFO)

    def _opening_bounded(self, how: How, bound: int, is_stated: bool) -> Operation[None]:
        return self._open_by(
            lambda user: self._operations.open(how, bound, user, is_stated), _ignore
        )

    def _handing_out(self, receive: Callable[[Any], T]) -> T:
        """What ``receive(claim)`` returns. What ends this early gives back what was taken.

        It is given a claim, to note there what it takes, and in its ``found`` what can no longer go
        back, but to the next call of this handle. Between the end of the claim and that of the call
        nothing can be interrupted.
        """
        if interrupts.abandoned:
            interrupts.settle()
        claim = self._claim()
        try:
            found = receive(claim)
            claim.end()
            return found
        except PressureError as error:
            if error.took_nothing:
                claim.end()
            else:
                interrupts.abandoned += [(self, claim)]
                self._see_to(error)
            if self._anonymous and isinstance(error, QueueDoesNotExistError):
                self._check_open()
            raise
        except BaseException as error:
            interrupts.abandoned += [(self, claim)]
            self._see_to(error)
            raise

    def _see_to(self, error: BaseException) -> None:
        """What was abandoned because of ``error`` goes back: at once, if the broker answers."""
        if isinstance(error, BrokerUnavailable):
            self._here.lease.keep()
        else:
            interrupts.settle()

    #: What one call takes: the session that takes it.
    _claim: Any = Handle._session

    def _give_up(self, claim: Any) -> None:
        """What was taken by an interrupted call goes back."""
        claim.interrupted()
        claim.end()
        if claim.taken is not None:
            self._here.take_back(claim.taken)

    def _delete(self, block: bool, timeout: float | None) -> None:
        self._run(self._leave(self._operations.delete(block, self._seconds(timeout))))

    @property
    def _here(self) -> Presence:
        """This process in the queue."""
        if self._presence is None:
            engine, discipline = registry.engine(self._address), self._operations.discipline
            self._presence = presence.of(engine, self._name, discipline, self._options.lease)
        found: Presence = self._presence
        return found

    def stats(self) -> Stats:
        """Counts of the queue at one moment; see :class:`Stats`.

        Waits for no other client. Raises QueueDoesNotExistError.
        """
        return self._run(self._operations.stats())

    def why_blocked(self) -> Diagnosis:
        """Explain what a put and a get would wait for now.

        The diagnosis says which clients are in the way, which have items in flight, and whether
        they are alive.
        ``print(queue.why_blocked())`` shows it in words. If a process of this host has ended and
        still has a role (the right to put or to get), the role is free after this call. Waits for
        no other client. Raises QueueDoesNotExistError.
        """
        return self._run(self._operations.why_blocked())


def _ignore(opened: object) -> None:
    """What a queue was opened with is not kept."""
