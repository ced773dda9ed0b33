"""The ids of calls."""

from __future__ import annotations

import itertools
import os


class CallIds:
    """The ids that one client gives: no other client gives the same. For any thread."""

    def __init__(self) -> None:
        self._prefix = os.urandom(8).hex()
        self._numbers = itertools.count(1)

    def next(self) -> str:
        """Return an id that no call had before."""
        return f"{self._prefix}-{next(self._numbers)}"

    @property
    def of_none(self) -> str:
        """An id that no call ever has."""
        return f"{self._prefix}-0"
