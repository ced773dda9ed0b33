"""Decide whether to try a smaller call, or calls together, before a full call."""

from __future__ import annotations


class Shortcut:
    """A call that is tried before a full call. After a try that did not help, it is not tried again
    until some full calls in a row were served at once: so a caller that often has to wait makes one
    call less."""

    #: How many full calls. A declined try costs about as much time as it saves in so many calls.
    PROBATION = 5

    def __init__(self) -> None:
        self.is_open = True
        self._missing = 0

    def close(self) -> None:
        """Note that the last call, smaller or full, was not served at once."""
        self.is_open = False
        self._missing = self.PROBATION

    def note(self, served: bool) -> None:
        """Note whether a full call was served at once."""
        if not served:
            self.close()
            return
        self._missing -= 1
        self.is_open = self._missing <= 0
