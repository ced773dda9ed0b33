"""Receive one notice after the other on a bell, without a request for each."""

from __future__ import annotations

import time


class Listening:
    """The state of the client of an inbox while it receives each notice on its bell. The server has
    noted it as waiting.
    """

    #: It makes a request after so many notices, and after so many seconds: this removes the notices
    #: that it has received, and renews its lease. It waits for a tick at most, so it makes one in
    #: less than a second, the shortest lease.
    MOST, SECONDS = 32, 0.05

    def __init__(self, inbox: str, seen: int) -> None:
        self.inbox = inbox
        self._seen = seen
        self._left = self.MOST
        self._ends = time.monotonic() + self.SECONDS

    def note(self, number: int) -> None:
        """Note that the notice of that number was received."""
        self._seen = number
        self._left -= 1

    def goes_on(self, inbox: str, seen: int) -> bool:
        """Tell whether the client may wait for the next notice without a request."""
        is_it = inbox == self.inbox and seen == self._seen
        return is_it and self._left > 0 and time.monotonic() < self._ends
