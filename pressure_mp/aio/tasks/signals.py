"""The signals that end worker pools of asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

#: Is told the number of a signal.
Hearer = Callable[[int], None]


class _Ear:
    """The signals that one event loop gets, for all pools that run in it."""

    def __init__(self) -> None:
        self.hearers: list[Hearer] = []
        #: Of each signal: the handler before, and what the loop had to call.
        self._previous: dict[signal.Signals, tuple[Any, asyncio.Handle | None]] = {}

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Handle the signals that are not ignored."""
        of_loop: dict[int, asyncio.Handle] = getattr(loop, "_signal_handlers", {})
        for number in (signal.SIGTERM, signal.SIGINT):
            handler = signal.getsignal(number)
            if handler != signal.SIG_IGN:
                self._previous[number] = handler, of_loop.get(number)
                loop.add_signal_handler(number, self._hear, number)

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """All is as it was before."""
        for number, (handler, of_loop) in self._previous.items():
            if of_loop is not None:
                loop.add_signal_handler(number, of_loop._callback, *of_loop._args)  # type: ignore[attr-defined]
            else:
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
        self._previous.clear()

    def _hear(self, number: int) -> None:
        for hearer in list(self.hearers):
            hearer(number)


_ears: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Ear] = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def heard_by(hearer: Hearer) -> Iterator[None]:
    """SIGTERM and SIGINT are told to ``hearer``, where this thread may handle them; and to all
    others of this loop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    ear = _ears.setdefault(loop, _Ear())
    if not ear.hearers:
        ear.open(loop)
    ear.hearers.append(hearer)
    try:
        yield
    finally:
        ear.hearers.remove(hearer)
        if not ear.hearers:
            ear.close(loop)
