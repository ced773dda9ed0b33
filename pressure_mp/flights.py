"""What this process has in flight from one queue: whose turn the next ``task_done()`` is."""

from __future__ import annotations

import itertools
import threading
from collections import deque


class _Thread(threading.local):
    """A mark that no other thread has or will have, which a thread id does not promise."""

    def __init__(self) -> None:
        self.mark = object()


_thread = _Thread()


class Flights:
    """The numbers of the items in flight, each noted for the thread that got it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals = itertools.count()
        self._by_thread: dict[object, deque[tuple[int, int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_thread)

    def add(self, seq: int) -> None:
        """The calling thread got an item."""
        with self._lock:
            mine = self._by_thread.setdefault(_thread.mark, deque())
            mine.append((next(self._arrivals), seq))

    def pop(self) -> int | None:
        """The item that the calling thread got first, else the one that this process did."""
        with self._lock:
            mark = _thread.mark
            if mark not in self._by_thread:
                if not self._by_thread:
                    return None
                mark = min(self._by_thread, key=lambda thread: self._by_thread[thread][0])
            items = self._by_thread[mark]
            _, seq = items.popleft()
            if not items:
                del self._by_thread[mark]
            return seq

    def push_back(self, seq: int) -> None:
        """Undo a pop: the broker did not answer."""
        with self._lock:
            self._by_thread.setdefault(_thread.mark, deque()).appendleft((-1, seq))

    def discard(self, seq: int) -> None:
        """An item that the calling thread got is in flight no longer."""
        with self._lock:
            mine = self._by_thread[_thread.mark]
            mine.remove(next(item for item in mine if item[1] == seq))
            if not mine:
                del self._by_thread[_thread.mark]
