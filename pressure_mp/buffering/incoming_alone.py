"""What is fetched ahead unasked: by the only process that gets from a queue, exactly as long as it
is that, and no more than it hands out in a moment."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from queue import Empty as NothingNew
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

from .. import interrupts
from ..deadlines import deadline, seconds_left
from ..engines.contract.items import MOST_ITEMS
from ..engines.contract.replies import InUse, Outcome
from ..exceptions import ConsumerInUseError
from .incoming_for_good import IncomingForGood

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from .handle import BufferedHandle

#: Seconds in which what is fetched is to be handed out, and after which the rest goes back.
_WINDOW, _KEPT = 0.01, 0.02
#: After a call that found no more than one item, so many get one by one; then twice as many.
_FEWEST, _MOST_SINGLE = 8, 1024
#: Seconds between two questions whether what another one fetched has gone back; and for which one
#: that may not wait asks.
_PAUSE, _GRACE = 0.002, 0.2
#: Seconds for which the thread waits for something to give back before it ends; and until it tries
#: again to give back what it could not.
_LINGER, _RETRY = 1.0, 0.5


class Pace:
    """How many items to fetch: twice as many as before, and no more than will soon be needed."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nothing is known: one by one."""
        self._number = 1
        self._visited = -math.inf
        self._singles, self._single = _FEWEST, 0

    def next_number(self) -> int:
        """For a call that is made now."""
        now = monotonic()
        passed, self._visited = now - self._visited, now
        if self._single > 0:
            self._single -= 1
            return 1
        soon = int(self._number * _WINDOW / max(passed, 1e-6))
        self._number = max(1, min(soon, self._number * 2, MOST_ITEMS))
        return self._number

    def note(self, found: int) -> None:
        """A call for several found so many."""
        if found > 1:
            self._singles = _FEWEST
            self._number = min(self._number, found * 2)
            return
        # To fetch takes longer than to get.
        self._number, self._single = 1, self._singles
        self._singles = min(self._singles * 2, _MOST_SINGLE)


class IncomingAlone(IncomingForGood):
    """Of an anonymous queue. Its first get, or look at how many items there are, announces it: then
    all that another one fetched goes back before anything else is done, and nobody fetches ahead
    any more."""

    def __init__(self, handle: BufferedHandle) -> None:
        self._pace = Pace()
        super().__init__(handle, 1)

    def reset(self) -> None:
        super().reset()
        self._pace.reset()
        self._is_known = False
        self._is_alone = False
        #: On the monotonic clock: when what is here goes back, and until when it is surely kept.
        self.due = 0.0
        self._until = 0.0
        self._asked = 0.0

    # Announcing

    def _announce(self, handle: BufferedHandle, end: float | None) -> bool:
        """This handle gets items, or looks at how many there are. Waits until what another one
        fetched has gone back; returns whether that was before ``end``."""
        if self._is_known:
            return True
        self._take_name()
        announcing = handle._here.operations.announce
        found = handle._run_at_once(announcing(self._name))
        if isinstance(found, InUse):
            with handle._here:  # what a dead one had goes back too
                while isinstance(found, InUse):
                    if end is not None and monotonic() >= end:
                        return False
                    time.sleep(_PAUSE)
                    found = handle._run_at_once(announcing(self._name))
        self._is_alone = found is Outcome.ALONE
        self._is_known = True
        return True

    def announce(self, handle: BufferedHandle) -> None:
        """What another one fetched is back, and counts; unless that takes long."""
        self._announce(handle, monotonic() + _GRACE)

    # Getting

    def get(self, handle: BufferedHandle, block: bool, timeout: float | None) -> Any:
        if monotonic() < self._until:
            try:
                for item in self._pops:
                    self._handed_out[0] += 1
                    return item
            except IndexError:
                pass
        return self._get_next(handle, block, deadline(block, timeout))

    def get_many(
        self,
        handle: BufferedHandle,
        number: int,
        block: bool,
        timeout: float | None,
        look: Callable[[], None] | None = None,
    ) -> list[Any]:
        if self:
            return super().get_many(handle, number, block, timeout, look)
        end = deadline(block, timeout)
        self._begin_get(handle, block, end)
        return handle._get_many_at_once(number, block, seconds_left(end), look)

    def _begin_get(self, handle: BufferedHandle, block: bool, end: float | None) -> None:
        handle._check_open()
        handle._settle(end)
        if not self._announce(handle, end if block else monotonic() + _GRACE):
            raise ConsumerInUseError(
                f"queue {handle.name!r} has another consumer, which has not yet given back what it "
                "fetched: it is stopped, or the broker does not answer it. Try again"
            )
        if self._ahead or self._raw:  # it was not handed out in time
            self.give_back(handle, self.patience)

    def _get_next(self, handle: BufferedHandle, block: bool, end: float | None) -> Any:
        while True:
            if not self._is_known or monotonic() >= self._until:
                self._begin_get(handle, block, end)
            self._size = self._pace.next_number() if self._is_alone else 1
            if self._size == 1:
                return handle._get_at_once(block, seconds_left(end))
            handle._settle(end)
            if self._make_ready(handle, block, end) is not None:
                return handle._get_at_once(block, seconds_left(end))
            try:
                return self._hand_out()
            except IndexError:  # other threads were faster
                continue

    def _hand_out(self) -> Any:
        if monotonic() >= self._until:  # others may have it
            raise IndexError
        return super()._hand_out()

    def _fetch(
        self, handle: BufferedHandle, presence: Presence, block: bool, end: float | None
    ) -> bool:
        self._asked = monotonic()
        found = super()._fetch(handle, presence, block, end)
        self._pace.note(len(self) if found else 1)
        # The broker keeps them for half of a lease, and longer, from when it was asked.
        self._until = self._asked + handle._options.lease / 3000
        self.due = monotonic() + _KEPT
        _see_to(self)
        return found

    def _note(self, waits: bool) -> None:
        super()._note(waits)
        if not waits:
            self._asked = monotonic()

    # Giving back

    def _return(self, presence: Presence, run: Run[bool]) -> None:
        super()._return(presence, run)
        self._pace.reset()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to give back, or the presence of this process will do it."""
        return not self.holds or self._handle() is None

    def expire(self) -> None:
        """Give back what was not handed out in time, unless it was fetched just now."""
        handle = self._handle()
        if handle is not None and self._is_due:
            self.give_back(handle)
            if self.holds:  # the broker does not answer
                self.due = monotonic() + _RETRY

    def look(self, presence: Presence) -> None:
        self._returns = self._returns or self._is_due  # nobody did it, if a thread was interrupted
        super().look(presence)

    @property
    def _is_due(self) -> bool:
        return self.holds and monotonic() >= self.due and not self._lock.locked()


# What gives back, in a thread that runs while there is anything.

_guard = threading.RLock()
_seen_to: set[IncomingAlone] = set()
_thread: threading.Thread | None = None  # which notes itself
_more: SimpleQueue[None] = SimpleQueue()


def _see_to(incoming: IncomingAlone) -> None:
    """See to it that what it fetched goes back in time."""
    if incoming in _seen_to:
        return
    with _guard:
        _seen_to.add(incoming)
        if _thread is not None:
            _more.put(None)
            return
        thread = threading.Thread(target=_give_back, name="pressure_mp returns", daemon=True)
        try:
            interrupts.start(thread)
        except RuntimeError:  # the process ends, and gives back then
            pass


def _give_back() -> None:
    global _thread
    with _guard:
        if _thread is not None:
            return
        _thread = threading.current_thread()
    while True:
        for incoming in tuple(_seen_to):
            incoming.expire()
            if incoming.is_over:
                _seen_to.discard(incoming)
        if _seen_to:
            time.sleep(max(min(each.due for each in tuple(_seen_to)) - monotonic(), _PAUSE))
            continue
        try:
            _more.get(timeout=_LINGER)
        except NothingNew:
            with _guard:
                if not _seen_to:
                    _thread = None
                    return


def _after_fork_in_child() -> None:
    global _guard, _thread, _more
    _guard, _thread, _more = threading.RLock(), None, SimpleQueue()
    _seen_to.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
