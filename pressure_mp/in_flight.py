"""Keep the items that this process has in flight from one queue; choose the next to acknowledge."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol


class _Thread(threading.local):
    """The mark of a thread. No other thread has it or will have it, while a thread id can be used
    again."""

    def __init__(self) -> None:
        self.mark = object()


_thread = _Thread()
_tasks: weakref.WeakKeyDictionary[object, object] = weakref.WeakKeyDictionary()


def mark_of(task: object) -> object:
    """Return the mark of an asyncio task. The task itself would keep alive what it returned."""
    return _tasks.setdefault(task, object())


_calls = itertools.count(1)
#: The number of a call that takes for a worker of a queue of tasks is the worker's number times
#: this, and the number of the call in its process: a task tells which worker has it. Such a number
#: has 53 bits at most.
CALLS_OF_ONE = 1 << 40
MOST_WORKERS = 1 << 12


class Claim:
    """The items that one call took, until they are handed out, and the number of the call. ``mark``
    is the mark of the asyncio task that takes them, if it is not a thread."""

    __slots__ = ("call", "mark", "seqs")

    def __init__(self, mark: object = None) -> None:
        self.mark = mark
        self.call = 0
        self.seqs: Sequence[int] = ()

    def begin(self, worker: int = 0) -> int:
        """Return a number for the call, which this process never uses again."""
        self.call = worker * CALLS_OF_ONE + next(_calls)
        return self.call

    def end(self) -> None:
        """Note that all of it is handed out."""


_NO_HEADERS: Mapping[str, str] = {}


class ItemInFlight:
    """An item in flight."""

    #: The call that acknowledges it, or that last tried to; and when that call began to.
    asker: Asking | None = None
    asked = 0
    is_done = False
    #: The transaction that acknowledges it when it commits.
    transaction: Transaction | None = None
    #: The headers from its producer's listeners, if there was a listener here when it was got.
    headers: Mapping[str, str] = _NO_HEADERS

    def __init__(self, seq: int, arrival: int) -> None:
        #: The item's number; below 0 once the item was taken away.
        self.seq = seq
        self.arrival = arrival

    @property
    def was_taken_away(self) -> bool:
        """Whether this process was given the same item again since then."""
        return self.seq < 0


class Transaction(Protocol):
    """A transaction of the caller's."""

    @property
    def is_over(self) -> bool:
        """Whether it has committed or was rolled back."""


class Asking:
    """A call that acknowledges, and the item that it asks about; ``mark`` is as in ``Claim``. A
    signal handler's call in the midst of it is another one."""

    __slots__ = ("held", "is_over", "mark")

    def __init__(self, mark: object = None) -> None:
        self.mark = mark
        self.held: ItemInFlight | None = None
        #: Whether other calls may ask about the item, if it is not done. The call sets it itself,
        #: in a step before which nothing can be interrupted.
        self.is_over = False


class InFlight:
    """The numbers of the items in flight, each noted for the thread that got it, or for the asyncio
    task with that mark."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._clock = itertools.count(1)
        self._owners: dict[object, OrderedDict[int, ItemInFlight]] = {}
        self._was_asked = False
        self._asks = 0

    def __bool__(self) -> bool:
        with self._lock:
            return any(
                _next_of(theirs, _is_in_flight) is not None
                for theirs in list(self._owners.values())
            )

    @property
    def never_acknowledged(self) -> int:
        """How many items are in flight in a process that never called ``task_done()``; else 0."""
        with self._lock:
            if self._was_asked:
                return 0
            return sum(
                _is_in_flight(held) for some in self._owners.values() for held in some.values()
            )

    def add(self, seq: int, mark: object = None) -> None:
        """Note that the caller got an item. If an item is in flight here under its number, that was
        taken away meanwhile."""
        mark = mark or _thread.mark
        with self._lock:
            mine = self._owners.get(mark)
            if mine is None or seq in mine or len(self._owners) > 1:
                self._take_away_all((seq,))
                mine = self._owners.setdefault(mark, OrderedDict())
            mine[seq] = ItemInFlight(seq, next(self._clock))

    def came(self, seqs: Iterable[int]) -> None:
        """Note that the broker gave these items to this process, before they are handed out. An
        item that is in flight here under one of these numbers was taken away meanwhile."""
        if self._owners:
            with self._lock:
                self._take_away_all(seqs)

    def _take_away_all(self, seqs: Iterable[int]) -> None:
        for theirs in list(self._owners.values()):
            if theirs:
                for seq in theirs.keys() & seqs:
                    self._take_away(theirs, seq)

    @staticmethod
    def _take_away(theirs: OrderedDict[int, ItemInFlight], seq: int) -> None:
        """Renumber an item that was taken away, and leave its number to the item that was given
        again. Its next ``task_done()`` comes too late: it goes before all others, so that none of
        these is acknowledged too early."""
        held = theirs[seq]
        held.seq = -held.arrival
        theirs[held.seq] = held
        theirs.move_to_end(held.seq, last=False)
        del theirs[seq]

    def note(self, seqs: Sequence[int], headers: Sequence[Mapping[str, str]]) -> None:
        """Note the headers of items in flight, for the listeners that are told when these are
        done."""
        with self._lock:
            self._note(dict(zip(seqs, headers, strict=True)))

    def _note(self, headers: dict[int, Mapping[str, str]]) -> None:
        for theirs in list(self._owners.values()):
            for seq in theirs.keys() & headers:
                theirs[seq].headers = headers[seq]

    def ask(self, asking: Asking) -> tuple[bool, bool]:
        """Choose the item that a call acknowledges, which ``asking`` has then; return whether it
        was asked about before, and whether the caller has got an item since then that is not done.

        It is the first item that the caller got, else the first that this process got; but none
        that another call asks about, or that a transaction under way acknowledges.

        An item stays in flight here until it is marked as done. An interrupted caller has not
        marked it, and so asks about it again.
        """
        self._was_asked = True
        with self._lock:
            return self._choose(asking, asking.mark or _thread.mark)

    def _choose(self, asking: Asking, mark: object) -> tuple[bool, bool]:
        while True:
            self._asks = number = self._asks + 1
            held = self._first(self._owners.get(mark), asking)
            if held is None:
                held = self._first_of_others(asking)
            if held is None:
                asking.held = None
                return False, False
            before, now = held.asked, next(self._clock)
            has_newer = before > 0 and self._last_arrival(mark) > before
            if self._asks == number:  # no signal handler has asked meanwhile
                held.asked, held.asker, asking.held = now, asking, held
                return before > 0, has_newer

    def _last_arrival(self, mark: object) -> int:
        mine = self._owners.get(mark)
        last = _next_of(mine, _is_not_done, from_end=True) if mine else None
        return last.arrival if last else 0

    def last(self) -> int | None:
        """Return the number of the item that the calling thread got last."""
        with self._lock:
            mine = self._owners.get(_thread.mark)
            return None if mine is None else next(reversed(mine))

    def discard(self, seq: int | None) -> None:
        if seq is None:
            return
        with self._lock:
            self._discard(seq)

    def _discard(self, seq: int) -> None:
        for owner in (_thread.mark, *self._owners):
            theirs = self._owners.get(owner)
            if theirs is not None and theirs.pop(seq, None) is not None:
                if not theirs:
                    del self._owners[owner]
                return

    def _first_of_others(self, asking: Asking) -> ItemInFlight | None:
        free = [self._first(theirs, asking) for theirs in list(self._owners.values())]
        return min((one for one in free if one), key=_arrival, default=None)

    @staticmethod
    def _first(some: OrderedDict[int, ItemInFlight] | None, asking: Asking) -> ItemInFlight | None:
        """Return the first item that is neither done nor asked about by another call; forget the
        done items before it."""
        while some:
            try:
                for held in some.values():
                    if held.is_done:
                        break
                    is_settled = held.transaction is None or held.transaction.is_over
                    asker = held.asker
                    if is_settled and (asker is None or asker.is_over or asker is asking):
                        return held
                else:
                    return None
            except RuntimeError:  # a signal handler got an item meanwhile, or one is done
                continue
            some.pop(held.seq, None)
            held.asker = None  # no cycle, which would stay until garbage is collected
        return None


def _next_of(
    some: OrderedDict[int, ItemInFlight],
    is_it: Callable[[ItemInFlight], bool],
    from_end: bool = False,
) -> ItemInFlight | None:
    while True:
        try:
            every = reversed(some.values()) if from_end else some.values()
            return next(filter(is_it, every), None)
        except RuntimeError:  # a signal handler got an item meanwhile, or one is done
            continue


def _is_in_flight(held: ItemInFlight) -> bool:
    return not held.is_done and not held.was_taken_away


def _is_not_done(held: ItemInFlight) -> bool:
    return not held.is_done


def _arrival(held: ItemInFlight) -> int:
    return held.arrival
