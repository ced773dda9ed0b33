"""Fetches items ahead through one handle (``prefetch=N``), and keeps them until a get."""

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

#: Seconds for which a get that cannot wait waits for another thread's request to the broker.
_MOMENT = 0.01

_readers = itertools.count(1)


class Incoming(DirectGet, ABC):
    """Has up to ``size`` items, decoded, in the order of the queue. The broker keeps them too, in
    flight, until they are handed out.

    One thread fetches at a time, when no item is left. If one item of a fetch cannot be decoded,
    all of them are kept as they came.
    """

    def __init__(self, queue: ObjectAttachment) -> None:
        self._size = queue.buffering.gets
        self._queue = weakref.ref(queue)
        buffers.add(self)
        self.reset()

    def reset(self) -> None:
        """Begin as a reader that never fetched: a new one, or in a forked child."""
        self._ahead: deque[Any] = deque()
        self._pops = interrupts.pops(self._ahead)
        self._raw: deque[Delivery] = deque()
        self._lock = threading.Lock()
        self._waits = False  # the thread that fetches waits for an item
        self._passing = threading.Lock()  # it goes on to wait while another one gets an item
        self._name = ""
        self._returns = False  # what is here goes back, and has not yet gone
        self._back: list[Any] = []  # what was taken out to go back

    def __len__(self) -> int:
        return self._number_ready

    @property
    def _number_ready(self) -> int:
        """How many items can be handed out at once."""
        return len(self._ahead) + len(self._raw)

    @property
    @abstractmethod
    def holds(self) -> bool:
        """Whether the broker keeps any items for this reader."""

    @abstractmethod
    def _fetch(
        self, queue: ObjectAttachment, presence: Presence, block: bool, end: float | None
    ) -> bool:
        """Have at least one item here; wait for it, and raise, as ``get`` does. Returns False if
        the next item is not to be fetched ahead."""

    @abstractmethod
    def _hand_out(self) -> Any:
        """Return the next decoded item. Raises IndexError."""

    @abstractmethod
    def _decode_next(self, queue: ObjectAttachment) -> None:
        """Decode the first item that was not. Raises what decoding it raises."""

    def _undo(self, item: Any) -> Any:
        """Return what is kept of the item that the calling thread was handed last."""
        return item

    @abstractmethod
    def _report(self, presence: Presence) -> None:
        """Tell the broker what was handed out, and that this reader goes on. Drop the items that
        other consumers were given meanwhile."""

    @abstractmethod
    def _return(self, presence: Presence, run: Run[bool]) -> None:
        """Put the items here back. The next call tries again if this fails."""

    # Getting

    def get(self, queue: ObjectAttachment, block: bool, timeout: float | None) -> Any:
        """Get the next item; fetch when there is none here."""
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
        """Get the next item, and then the items that are here, up to ``number`` in all; then call
        ``look``."""
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
            if look is not None:  # the look at the queue cannot see what is only here, or in doubt
                self.give_back(queue)
            raise

    def _give_up(self, found: list[Any]) -> None:
        """Make the items of an interrupted call the next ones again."""
        while found:
            self._ahead += (self._undo(found[-1]),)
            del found[-1]
            self._ahead.rotate(1)

    def _get_with_care(self, queue: ObjectAttachment, block: bool, end: float | None) -> Any:
        """Do :meth:`get`. What is fetched is handed out when no lock is held any more: to release
        it is a call, behind which the item could be lost to an interrupt."""

        def receive(claim: Any) -> Any:
            # A content is read when no lock is held: other threads go on meanwhile.
            return queue.accept(self._receive(queue, claim), claim)

        while True:
            queue.check_open()
            queue.settle(end)
            is_ready = self._make_ready(queue, block, end)
            try:
                return self._hand_out() if is_ready else queue.hand_out(receive)
            except IndexError:  # other threads were faster
                continue

    def _make_ready(self, queue: ObjectAttachment, block: bool, end: float | None) -> bool:
        """Have an item here; False when one is to be received that is not fetched ahead."""
        first = () if not block else (-1.0 if end is None else max(end - monotonic(), 0.0),)
        for held in interrupts.attempts(self._lock, *first, more=_MOMENT):
            if held:
                try:
                    if not self._number_ready and not self._fill(queue, block, end):
                        return False
                    if self._raw:
                        self._decode_next(queue)
                    return True
                finally:
                    self._waits = False
                    self._lock.release()
                    if queue.is_closed:
                        self.give_back(queue)
            if self._waits:
                return False
        raise AssertionError("attempts end only with the lock")

    def _receive(self, queue: ObjectAttachment, claim: Any) -> Any:
        """Receive an item whose content is in chunks, or while another thread waits for one. Raises
        IndexError when neither is so any more."""
        for held in interrupts.attempts(self._lock, 0.0, more=_MOMENT):
            if held:
                try:
                    if not self:
                        return queue.receive(claim)
                    break
                except Empty:
                    break
                finally:
                    self._lock.release()
            if self._waits:
                with self._passing:
                    if self._waits:
                        return queue.receive(claim)
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
        """Put back to the front what is here, in order. Waits ``patience`` seconds for a thread
        that fetches, which does it itself if the handle was closed. What fails now is done by this
        process's presence."""
        if self._name:
            self._returns = True
            self._look(queue.here, queue.run_at_once, patience)

    def look(self, presence: Presence) -> None:
        """Tell the broker what was handed out, or put back: called now and then."""
        if self._queue() is None:
            self._returns = True
        self._look(presence, presence.lease.run_now)

    def leave(self, presence: Presence) -> None:
        """Put the items here back: the process ends."""
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
        """Note that the broker keeps no items for this reader."""

    def _drain(self) -> None:
        """Take all items out, the last one first: another thread takes the first meanwhile."""
        for found in (self._raw, self._ahead):
            try:
                for item in map(deque.pop, repeat(found)):
                    self._back += (item,)
            except IndexError:
                pass


def decoded(queue: ObjectAttachment, items: list[bytes]) -> list[Any] | None:
    """Return the objects in the items that were fetched; None if one of them cannot be used."""
    try:
        found = queue.codec.decode_many(items)
        queue.operations.tell_received(items)
        return found
    except Exception as error:
        if interrupts.is_from_outside(error):
            raise
        return None
