"""The ids of calls."""

from __future__ import annotations

import itertools
import os


class CallIds:
    """Those that one client gives: no other client gives the same. For any thread."""

    def __init__(self) -> None:
        self._prefix = os.urandom(8).hex()
        self._numbers = itertools.count(1)

    def next(self) -> str:
        """One that no call had before."""
        return f"{self._prefix}-{next(self._numbers)}"

    @property
    def of_none(self) -> str:
        """One that no call ever has."""
        return f"{self._prefix}-0"
