"""To hear one notice after the other without asking for each."""

from __future__ import annotations

import time


class Listening:
    """What the client of an inbox knows of it while it hears each notice on its bell. The server
    has noted it as one who waits.
    """

    #: It asks after so many notices, and after so many seconds: what it has heard is removed then,
    #: and its lease begins anew. It waits for a tick at most, so it asks in less than a second,
    #: which is the shortest lease.
    MOST, SECONDS = 32, 0.05

    def __init__(self, inbox: str, seen: int) -> None:
        self.inbox = inbox
        self._seen = seen
        self._left = self.MOST
        self._ends = time.monotonic() + self.SECONDS

    def note(self, number: int) -> None:
        """It has heard the notice of that number."""
        self._seen = number
        self._left -= 1

    def goes_on(self, inbox: str, seen: int) -> bool:
        """Whether it may wait for what follows without asking before."""
        is_it = inbox == self.inbox and seen == self._seen
        return is_it and self._left > 0 and time.monotonic() < self._ends
