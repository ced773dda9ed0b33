"""Something that is tried before a full call, as long as it mostly helps."""

from __future__ import annotations


class Shortcut:
    """Something that is tried before a full call. After it did not help it is not tried again until
    some full calls were served at once, one after the other: whoever often has to wait makes one
    call less."""

    #: So many. One that is declined takes about as long as some full calls take longer.
    PROBATION = 5

    def __init__(self) -> None:
        self.is_open = True
        self._missing = 0

    def close(self) -> None:
        """The last call, small or full, was not served at once."""
        self.is_open = False
        self._missing = self.PROBATION

    def note(self, served: bool) -> None:
        """A full call was served at once, or not."""
        if not served:
            self.close()
            return
        self._missing -= 1
        self.is_open = self._missing <= 0
