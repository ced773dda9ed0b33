"""An attachment to a queue of items: how items come out so that an interrupted call loses none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import interrupts
from ..background import presence
from ..background.presence import Presence
from ..effects import Operation, T
from ..engines import registry
from ..engines.contract.queues import How
from ..exceptions import BrokerUnavailable, PressureError, QueueDoesNotExistError
from ..operations.control import FIFO
from ..operations.items import ItemOperations
from .attachment import Attachment


class ItemAttachment(Attachment):
    """An attachment to a queue of items, in whatever order it serves them."""

    operations: ItemOperations

    @property
    def is_fifo(self) -> bool:
        """Whether items leave in the order of their puts: only then may they wait in a process."""
        return self.operations.discipline == FIFO

    @property
    def here(self) -> Presence:
        """This process in the queue."""
        if self._presence is None:
            engine, discipline = registry.engine(self.address), self.operations.discipline
            self._presence = presence.of(engine, self.name, discipline, self.options.lease)
        found: Presence = self._presence
        return found

    def opening_bounded(self, how: How, bound: int, is_stated: bool) -> Operation[None]:
        """Open the queue with this bound; accept another bound unless this ``is_stated``."""
        return self.open_by(lambda user: self.operations.open(how, bound, user, is_stated), _ignore)

    def deleting(self, block: bool, timeout: float | None) -> Operation[None]:
        """Delete the queue, as ``delete`` does. Raises ArgumentError, ArgumentTypeError."""
        return self.leave(self.operations.delete(block, self.seconds(timeout)))

    def hand_out(self, receive: Callable[[Any], T]) -> T:
        """Return ``receive(claim)``. An exception before the end gives back what was taken.

        ``receive`` notes in the claim what it takes, and in its ``found`` the items that cannot go
        back, except to the next call of this handle. Between the end of the claim and the end of
        the call nothing can be interrupted.
        """
        if interrupts.abandoned:
            interrupts.settle()
        claim = self.claim()
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
            if self.is_anonymous and isinstance(error, QueueDoesNotExistError):
                self.check_open()
            raise
        except BaseException as error:
            interrupts.abandoned += [(self, claim)]
            self._see_to(error)
            raise

    def _see_to(self, error: BaseException) -> None:
        """Give back what the ``error`` interrupted: at once, if the broker answers."""
        if isinstance(error, BrokerUnavailable):
            self.here.lease.keep()
        else:
            interrupts.settle()

    #: What one call takes: here, the session that takes it for good.
    claim: Any = Attachment.session

    def _give_up(self, claim: Any) -> None:
        """Give back what an interrupted call took."""
        claim.interrupted()
        claim.end()
        if claim.taken is not None:
            self.here.take_back(claim.taken)


def _ignore(opened: object) -> None:
    """Ignore what opening the queue returned."""
