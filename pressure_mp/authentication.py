"""The error of a signature, in a module of its own: its base class loads multiprocessing."""

from __future__ import annotations

import multiprocessing

from .exceptions import PressureError


class AuthenticationError(PressureError, multiprocessing.AuthenticationError):
    """An item is unsigned, forged or signed with another key; or a handle has no key here.

    The item was not decoded; ``payload`` has its bytes as they were queued. A get sets the item
    aside, a take buries the task, and the result of a task stays as it is. A handle has no key when
    it was pickled for a process that does not have the key.
    """

    took_nothing = True

    def __init__(self, message: str, payload: bytes = b"") -> None:
        super().__init__(message, payload)
        self.payload = payload

    def __str__(self) -> str:
        return str(self.args[0])
