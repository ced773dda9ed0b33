"""What was fetched ahead from a queue through one handle, and not yet handed out."""

from __future__ import annotations

import itertools
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any

from .drivers import noting
from .effects import Operation
from .exceptions import Empty, PressureError, QueueDoesNotExistError, ShutDown
from .operations.flights import Flight
from .outgoing import deadline, left
from .processes import incarnation

if TYPE_CHECKING:
    from .flights import Flights
    from .object_queue import ObjectQueue
    from .presence import Presence, Run

#: Seconds for which one that cannot wait waits for another thread's words with the broker.
_MOMENT = 0.01
#: Seconds for which one who must know what is here waits, at most, for a thread that is at it.
PATIENCE = 1.0

_readers = itertools.count(1)


class Incoming(ABC):
    """Up to ``size`` items, decoded, in the order of the queue. The broker keeps them too, in
    flight, until they are handed out.

    One thread fetches at a time, when there is none left. Items one of which cannot be decoded are
    kept as they came.
    """

    def __init__(self, handle: ObjectQueue, size: int) -> None:
        self._size = size
        self._handle = weakref.ref(handle)
        self.reset()

    def reset(self) -> None:
        """A reader that never fetched: a new one, or that of a forked child."""
        self._ahead: deque[Any] = deque()
        self._raw: deque[Flight] = deque()
        self._lock = threading.Lock()
        self._waits = False  # the thread that fetches waits for an item
        self._passing = threading.Lock()  # it goes on to wait while another one gets an item
        self._name = ""
        self._call = 0  # the last one that is known to be answered
        self._returns = False  # what is here goes back, and has not yet gone

    def __len__(self) -> int:
        return len(self._ahead) + len(self._raw)

    @property
    @abstractmethod
    def holds(self) -> bool:
        """Whether the broker keeps anything for this reader."""

    @abstractmethod
    def _fetch(
        self, handle: ObjectQueue, presence: Presence, block: bool, end: float | None
    ) -> bool:
        """Have at least one item here; waits for it, and raises, as ``get`` does.

        False when the next item is not to be fetched ahead.
        """

    @abstractmethod
    def _hand_out(self) -> Any:
        """The next decoded item. Raises IndexError."""

    @abstractmethod
    def _hand_out_raw(self, handle: ObjectQueue) -> Any:
        """The next item of those that were not decoded. Raises what decoding it does."""

    @abstractmethod
    def _report(self, presence: Presence) -> None:
        """Tell the broker what was handed out, and that this reader goes on. What was given to
        others meanwhile is no longer here."""

    @abstractmethod
    def _return(self, presence: Presence, run: Run[bool]) -> None:
        """Put back what is here; what fails is tried again at the next call."""

    # Getting

    def get(self, handle: ObjectQueue, block: bool, timeout: float | None) -> Any:
        """The next item; fetches when there is none here."""
        try:
            return self._hand_out()
        except IndexError:
            return self._get_with_care(handle, block, deadline(block, timeout))

    def take(self, number: int) -> list[Any]:
        """Up to so many of the items that are here."""
        found: list[Any] = []
        try:
            while len(found) < number:
                found.append(self._hand_out())
        except IndexError:
            pass
        return found

    def _get_with_care(self, handle: ObjectQueue, block: bool, end: float | None) -> Any:
        while True:
            handle._check_open()
            handle._settle(end)
            if not self._enter(block, end):
                with self._passing:
                    if not self._waits:
                        continue
                    flight = handle._receive(False, None)
                return handle._accept(flight)
            try:
                if not self and not self._fill(handle, block, end):
                    alone = self._get_alone(handle)
                    if alone is None:
                        continue
                    flight = alone
                    break
                if self._raw:
                    return self._hand_out_raw(handle)
                return self._hand_out()
            except IndexError:  # other threads were faster
                continue
            finally:
                self._waits = False
                self._lock.release()
                if handle._handle_closed:
                    self.give_back(handle)
        return handle._accept(flight)

    def _fill(self, handle: ObjectQueue, block: bool, end: float | None) -> bool:
        presence = self._begin(handle)
        try:
            return self._fetch(handle, presence, block, end)
        finally:
            presence.watch(self)

    def _get_alone(self, handle: ObjectQueue) -> Flight | None:
        """An item that is not to be fetched ahead; None when another consumer was faster."""
        try:
            return handle._receive(False, None)
        except Empty:
            return None

    def _enter(self, block: bool, end: float | None) -> bool:
        """Be the one that fetches; False when another thread waits for an item all that time."""
        limit = left(end)
        if block and self._lock.acquire(timeout=-1 if limit is None else limit):
            return True
        while not self._lock.acquire(timeout=_MOMENT):
            if self._waits:
                return False
        return True

    def _note(self, waits: bool) -> None:
        # What another thread gets meanwhile is older than what is fetched when the wait is over.
        with self._passing:
            self._waits = waits

    def _begin(self, handle: ObjectQueue) -> Presence:
        if self._returns:
            self._return(handle._here, handle._run)
        if not self._name:
            self._name = f"{incarnation()}#{next(_readers)}"
        handle._codec.prepare()  # nothing is taken out that this handle has no key for
        return handle._here

    # Giving back

    def give_back(self, handle: ObjectQueue, patience: float = 0.0) -> None:
        """Put back to the front what is here, in order. Waits so long for a thread that is at it,
        which does it itself if the handle was closed. What fails now is done by this process's
        presence."""
        if self._name:
            self._returns = True
            self._look(handle._here, handle._run, patience)

    def look(self, presence: Presence) -> None:
        """What is to be done now and then: to tell what was handed out, or to put back."""
        if self._handle() is None:
            self._returns = True
        self._look(presence, presence.run_now)

    def leave(self, presence: Presence) -> None:
        """The process ends."""
        self._returns = True
        self._look(presence, presence.run_now)

    def _look(self, presence: Presence, run: Run[bool], patience: float = 0.0) -> None:
        if not self._lock.acquire(timeout=patience):
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

    def _drain(self, found: deque[Any]) -> list[Any]:
        """Take all out, the last one first: what another thread takes meanwhile is the first."""
        back = []
        try:
            while True:
                back.append(found.pop())
        except IndexError:
            return back


class IncomingForGood(Incoming):
    """Of a queue whose items are dealt with when they are handed out.

    The broker is told so by the next fetch, and until then by this process's presence.
    """

    def get(self, handle: ObjectQueue, block: bool, timeout: float | None) -> Any:
        try:
            return self._ahead.popleft()
        except IndexError:
            return self._get_with_care(handle, block, deadline(block, timeout))

    def reset(self) -> None:
        super().reset()
        self._fetched = 0  # by that call
        self._told = 0  # of these, how many the broker knows to be handed out
        self._out: int | None = None  # how many stay out of a call that goes back
        self._is_doubtful = False  # the next call may have been answered, and nobody heard it

    @property
    def holds(self) -> bool:
        return self._is_doubtful or self._told < self._fetched

    def _hand_out(self) -> Any:
        return self._ahead.popleft()

    def _hand_out_raw(self, handle: ObjectQueue) -> Any:
        return handle._accept(self._raw.popleft())

    def _fetch(
        self, handle: ObjectQueue, presence: Presence, block: bool, end: float | None
    ) -> bool:
        call, number = self._call + 1, self._size
        fetch = presence.operations.prefetch(
            self._name, call, number, block, left(end), handle._eof
        )
        try:
            with presence:
                items = handle._run(noting(fetch, self._note))
        except (Empty, ShutDown, QueueDoesNotExistError):
            self._forget()
            raise
        except BaseException:
            self._is_doubtful = True  # to be asked for again, by the same number
            raise
        if items is None:
            self._forget()
            return False
        self._call, self._is_doubtful = call, False
        self._fetched, self._told = len(items), 0
        try:
            self._ahead.extend(handle._codec.decode_many(items))
        except Exception:  # one cannot be used, which is not the others' fault
            self._raw.extend(Flight(0, item) for item in items)
        return True

    def _forget(self) -> None:
        self._call += 1
        self._fetched = self._told = 0
        self._is_doubtful = self._returns = False
        self._out = None

    def _report(self, presence: Presence) -> None:
        out = self._fetched - len(self)
        if presence.run_now(presence.operations.handed(self._name, self._call, out)):
            self._told = out
        elif not self._is_doubtful:
            self._drain(self._ahead)
            self._drain(self._raw)
            self._fetched = self._told = 0

    def _return(self, presence: Presence, run: Run[bool]) -> None:
        if self._out is None:
            self._out = self._fetched - len(self._drain(self._ahead)) - len(self._drain(self._raw))
        run(presence.operations.put_back(self._name, self._call, self._out))
        if self._is_doubtful:
            run(presence.operations.put_back(self._name, self._call + 1, 0))
        self._forget()


class IncomingUntilDone(Incoming):
    """Of a JoinableQueue: an item that is handed out stays in flight until ``task_done()``."""

    _flights: Flights

    def reset(self) -> None:
        super().reset()
        self._left: list[int] = []  # the numbers of what goes back

    @property
    def holds(self) -> bool:
        return bool(self._ahead or self._raw or self._left)

    def _hand_out(self) -> Any:
        item, seq = self._ahead.popleft()
        self._flights.add(seq)
        return item

    def _hand_out_raw(self, handle: ObjectQueue) -> Any:
        flight = self._raw.popleft()
        self._flights.add(flight.seq)
        return handle._accept(flight)

    def _fetch(
        self, handle: ObjectQueue, presence: Presence, block: bool, end: float | None
    ) -> bool:
        self._flights = presence.flights

        def run(operation: Operation[list[Flight]]) -> list[Flight]:
            return handle._run(noting(operation, self._note))

        self._call, flights = presence.take_ahead(
            run, self._size, block, left(end), handle._eof, self._name
        )
        try:
            objects = handle._codec.decode_many([flight.item for flight in flights])
        except Exception:  # one cannot be used, which is not the others' fault
            self._raw.extend(flights)
        else:
            numbers = [flight.seq for flight in flights]
            self._ahead.extend(zip(objects, numbers, strict=True))
        return True

    def _report(self, presence: Presence) -> None:
        # What was handed out, task_done() tells.
        if not presence.run_now(presence.operations.handed(self._name, self._call, 0)):
            self._drain(self._ahead)
            self._drain(self._raw)

    def _return(self, presence: Presence, run: Run[bool]) -> None:
        self._left += [seq for _, seq in self._drain(self._ahead)]
        self._left += [flight.seq for flight in self._drain(self._raw)]
        if self._left:
            run(presence.operations.requeue(incarnation(), seqs=self._left))
        self._left = []
        run(presence.operations.put_back(self._name, self._call, 0))
        self._forget()

    def _forget(self) -> None:
        self._left = []
        self._returns = False
