"""Futures of the library."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from simulated_fdb.drivers import Driver
from simulated_fdb.errors import Failed


class Future:
    """A value, or an error, which another thread may bring."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        #: Called when its caller has no more use for it.
        self.on_cancel: Callable[[], None] | None = None
        self.is_ready = False
        self.value: Any = None
        self._error = 0
        self.kept: Any = None  # memory to which the caller has pointers

    def complete(self, value: Any = None, error: int = 0) -> None:
        """Bring it; what comes after the first is ignored."""
        with self._lock:
            if self.is_ready:
                return
            self.value, self._error = value, error
            self.is_ready = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Have it called by the thread that brings the value; if it is there, by the driver."""
        with self._lock:
            if not self.is_ready:
                self._callbacks.append(callback)
                return
        self.driver.call_back(callback)

    def cancel(self) -> None:
        if self.on_cancel is not None and not self.is_ready:
            self.on_cancel()
        self.complete(error=1101)

    def check(self) -> Any:
        """The value. Raises Failed for an error, or if it is not there yet."""
        if not self.is_ready:
            raise Failed(2015)
        if self._error:
            raise Failed(self._error)
        return self.value
