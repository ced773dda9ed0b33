"""A watch of one key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .client import fdb_error


class Watch:
    """Calls ``ring``, in the library's thread, when the key is there. After an error that passes it
    begins again; after another the session looks by itself, as after every wait."""

    def __init__(self, tr: Any, key: bytes, ring: Callable[[], None]) -> None:
        self._tr, self._key, self._ring = tr, key, ring
        self._is_over = False
        self._fired: Any = None
        self._begin()

    def _begin(self) -> None:
        # What was written since is seen: the transaction begins here.
        self._found = self._tr.get(self._key)
        self._found.on_ready(self._look)

    def _look(self, found: Any) -> None:
        try:
            if found.present():
                self._ring()
                return
            self._fired = fired = self._tr.watch(self._key)
            if self._is_over:
                fired.cancel()
            fired.on_ready(self._told)
            self._committed = self._tr.commit()
        except fdb_error() as error:
            self._fail(error)

    def _told(self, fired: Any) -> None:
        try:
            fired.wait()
            self._ring()
        except fdb_error() as error:
            self._fail(error)

    def _fail(self, error: Any) -> None:
        if not self._is_over:
            self._passed = self._tr.on_error(error)
            self._passed.on_ready(self._again)

    def _again(self, passed: Any) -> None:
        try:
            passed.wait()
        except fdb_error():
            return
        self._begin()

    def stop(self) -> None:
        self._is_over = True
        self._tr.cancel()
        if self._fired is not None:
            self._fired.cancel()
