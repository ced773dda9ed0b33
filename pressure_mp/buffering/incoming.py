"""What was fetched ahead from a queue through one handle, and not yet handed out."""

from __future__ import annotations

import itertools
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from itertools import repeat
from time import monotonic
from typing import TYPE_CHECKING, Any

from .. import interrupts
from ..deadlines import deadline
from ..exceptions import Empty, PressureError, QueueDoesNotExistError
from ..identity.processes import incarnation
from ..operations.deliveries import Delivery
from .direct import DirectGet, buffers

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from ..handles.objects import ObjectAttachment

#: Seconds for which one that cannot wait waits for another thread's words with the broker.
_MOMENT = 0.01

_readers = itertools.count(1)


class Incoming(DirectGet, ABC):
    """Up to ``size`` items, decoded, in the order of the queue. The broker keeps them too, in
    flight, until they are handed out.

    One thread fetches at a time, when there is none left. Items one of which cannot be decoded are
    kept as they came.
    """

    def __init__(self, queue: ObjectAttachment) -> None:
        self._size = queue.buffering.gets
        self._queue = weakref.ref(queue)
        buffers.add(self)
        self.reset()

    def reset(self) -> None:
        """A reader that never fetched: a new one, or that of a forked child."""
        self._ahead: deque[Any] = deque()
        self._pops = interrupts.pops(self._ahead)
        self._raw: deque[Delivery] = deque()
        self._lock = threading.Lock()
        self._waits = False  # the thread that fetches waits for an item
        self._passing = threading.Lock()  # it goes on to wait while another one gets an item
        self._name = ""
        self._call = 0  # the last one that is known to be answered
        self._returns = False  # what is here goes back, and has not yet gone
        self._back: list[Any] = []  # what was taken out to go back

    def __len__(self) -> int:
        return self._number_ready

    @property
    def _number_ready(self) -> int:
        """How many can be handed out at once."""
        return len(self._ahead) + len(self._raw)

    @property
    @abstractmethod
    def holds(self) -> bool:
        """Whether the broker keeps anything for this reader."""

    @abstractmethod
    def _fetch(
        self, queue: ObjectAttachment, presence: Presence, block: bool, end: float | None
    ) -> bool:
        """Have at least one item here; waits for it, and raises, as ``get`` does.

        False when the next item is not to be fetched ahead.
        """

    @abstractmethod
    def _hand_out(self) -> Any:
        """The next decoded item. Raises IndexError."""

    @abstractmethod
    def _decode_next(self, queue: ObjectAttachment) -> None:
        """Decode the first of the items that were not. Raises what decoding it does."""

    def _undo(self, item: Any) -> Any:
        """What was kept of the item that the calling thread was handed last."""
        return item

    @abstractmethod
    def _report(self, presence: Presence) -> None:
        """Tell the broker what was handed out, and that this reader goes on. What was given to
        others meanwhile is no longer here."""

    @abstractmethod
    def _return(self, presence: Presence, run: Run[bool]) -> None:
        """Put back what is here; what fails is tried again at the next call."""

    # Getting

    def get(self, queue: ObjectAttachment, block: bool, timeout: float | None) -> Any:
        """The next item; fetches when there is none here."""
        try:
            return self._hand_out()
        except IndexError:
            return self._get_with_care(queue, block, deadline(block, timeout))

    def get_many(
        self,
        queue: ObjectAttachment,
        number: int,
        block: bool,
        timeout: float | None,
        look: Callable[[], None] | None = None,
    ) -> list[Any]:
        """The next item, and up to so many in all of those that are here then; and a ``look``."""
        found: list[Any] = []
        try:
            found += (self.get(queue, block, timeout),)
            try:
                while len(found) < number:
                    found += (self._hand_out(),)
            except IndexError:
                pass
            if look is not None:
                look()
            return found
        except PressureError:
            raise  # of the first: nothing was handed out
        except BaseException:
            interrupts.abandoned += [(self, found)]
            interrupts.settle()
            if look is not None:  # what is only here, or in doubt, the look at the queue cannot see
                self.give_back(queue)
            raise

    def _give_up(self, found: list[Any]) -> None:
        """Items that were handed out do not come through: they are the next ones again."""
        while found:
            self._ahead += (self._undo(found[-1]),)
            del found[-1]
            self._ahead.rotate(1)

    def _get_with_care(self, queue: ObjectAttachment, block: bool, end: float | None) -> Any:
        """The same as :meth:`get`. What is fetched is handed out when no lock is held any more:
        to release it is a call, behind which the item could be lost to an interrupt."""
        while True:
            queue.check_open()
            queue.settle(end)
            receive = self._make_ready(queue, block, end)
            try:
                if receive is None:
                    return self._hand_out()
                return queue.hand_out(self._accepting(queue, receive))
            except IndexError:  # other threads were faster
                continue

    @staticmethod
    def _accepting(queue: ObjectAttachment, receive: Callable[[Any], Any]) -> Callable[[Any], Any]:
        # A content is read when no lock is held: others go on meanwhile.
        return lambda claim: queue.accept(receive(claim), claim)

    def _make_ready(
        self, queue: ObjectAttachment, block: bool, end: float | None
    ) -> Callable[[Any], Any] | None:
        """Have an item here; else return what gets one that is not fetched ahead."""
        first = () if not block else (-1.0 if end is None else max(end - monotonic(), 0.0),)
        for held in interrupts.attempts(self._lock, *first, more=_MOMENT):
            if held:
                try:
                    if not self._number_ready and not self._fill(queue, block, end):
                        return self._receive_alone
                    if self._raw:
                        self._decode_next(queue)
                    return None
                finally:
                    self._waits = False
                    self._lock.release()
                    if queue.is_closed:
                        self.give_back(queue)
            if self._waits:
                return self._receive_beside
        raise AssertionError("attempts end only with the lock")

    def _receive_beside(self, claim: Any) -> Any:
        """An item, while another thread waits for one. Raises IndexError when it does no more."""
        queue = self._queue()
        assert queue is not None  # it calls this
        with self._passing:
            if not self._waits:
                raise IndexError
            return queue.receive(claim)

    def _receive_alone(self, claim: Any) -> Any:
        """An item whose content is in chunks. Raises IndexError when it is no longer the next."""
        queue = self._queue()
        assert queue is not None
        for held in interrupts.attempts(self._lock, more=_MOMENT):
            if not held and self._waits:
                break
            if held:
                try:
                    if not self:
                        return queue.receive(claim)
                    break
                except Empty:
                    break
                finally:
                    self._lock.release()
        raise IndexError

    def _fill(self, queue: ObjectAttachment, block: bool, end: float | None) -> bool:
        presence = self._begin(queue)
        try:
            return self._fetch(queue, presence, block, end)
        finally:
            presence.watch(self)

    def _note(self, waits: bool) -> None:
        # What another thread gets meanwhile is older than what is fetched when the wait is over.
        with self._passing:
            self._waits = waits

    def _begin(self, queue: ObjectAttachment) -> Presence:
        if self._returns:
            self._return(queue.here, queue.run_at_once)
        if not self._name:
            self._name = f"{incarnation()}#{next(_readers)}"
        queue.codec.prepare()  # nothing is taken out that this handle has no key for
        return queue.here

    # Giving back

    def give_back(self, queue: ObjectAttachment, patience: float = 0.0) -> None:
        """Put back to the front what is here, in order. Waits so long for a thread that is at it,
        which does it itself if the handle was closed. What fails now is done by this process's
        presence."""
        if self._name:
            self._returns = True
            self._look(queue.here, queue.run_at_once, patience)

    def look(self, presence: Presence) -> None:
        """What is to be done now and then: to tell what was handed out, or to put back."""
        if self._queue() is None:
            self._returns = True
        self._look(presence, presence.lease.run_now)

    def leave(self, presence: Presence) -> None:
        """The process ends."""
        self._returns = True
        self._look(presence, presence.lease.run_now)

    def _look(self, presence: Presence, run: Run[bool], patience: float = 0.0) -> None:
        for held in interrupts.attempts(self._lock, patience):
            if not held:
                return
            try:
                if self._returns:
                    self._return(presence, run)
                elif self.holds:
                    self._report(presence)
            except QueueDoesNotExistError:
                self._forget()
            except PressureError:
                pass  # the next look tries again
            finally:
                self._lock.release()

    @abstractmethod
    def _forget(self) -> None:
        """The broker no longer keeps anything for this reader."""

    def _drain(self) -> None:
        """Take all out, the last one first: what another thread takes meanwhile is the first."""
        for found in (self._raw, self._ahead):
            try:
                for item in map(deque.pop, repeat(found)):
                    self._back += (item,)
            except IndexError:
                pass


def decoded(queue: ObjectAttachment, items: list[bytes]) -> list[Any] | None:
    """The objects in what was fetched; None if one of them cannot be used, which is not the others'
    fault."""
    try:
        found = queue.codec.decode_many(items)
        queue.operations.tell_received(items)
        return found
    except Exception as error:
        if interrupts.is_from_outside(error):
            raise
        return None
