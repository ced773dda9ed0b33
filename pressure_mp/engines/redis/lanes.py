"""Calls that are done once, however often they arrive: numbered, one after the other."""

from __future__ import annotations

import secrets
from collections import deque

#: The ids of lanes that were used, and that no call is made in any more: the last so many. Their
#: replies are kept for a while.
dropped: deque[bytes] = deque(maxlen=10_000)


class Lane:
    """Calls that the server sees one after the other, numbered for each queue.

    A connection has a lane, and passes it on to the connection that takes its place: so a call
    that is sent again has the same number in the same lane, and the server knows it.
    """

    __slots__ = ("calls", "id")

    ID_SIZE = 16

    def __init__(self) -> None:
        self.id = secrets.token_hex(self.ID_SIZE // 2).encode()
        #: For each queue the number of the last call, and the time from which on the next one says
        #: again how long its reply is kept.
        self.calls: dict[bytes, list[float]] = {}

    def drop(self) -> None:
        """No further call is made in it."""
        if self.calls:
            dropped.append(self.id)
