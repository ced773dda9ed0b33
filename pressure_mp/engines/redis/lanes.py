"""Lanes of numbered calls: a call is done once, however often it arrives."""

from __future__ import annotations

import secrets
from collections import deque

#: The ids of the last lanes that were used and are used no more. Their replies are kept for a
#: while.
dropped: deque[bytes] = deque(maxlen=10_000)

#: The number of queues from which on a lane removes those that it can forget.
_FEW = 64


class Lane:
    """Calls that the server sees one after the other, with growing numbers.

    A connection has a lane, and passes it on to the connection that takes its place: so a call
    that is sent again has the same number in the same lane, and the server knows it.
    """

    __slots__ = ("_few", "_told", "id", "number")

    ID_SIZE = 16

    def __init__(self) -> None:
        self.id = secrets.token_hex(self.ID_SIZE // 2).encode()
        #: The number of the last call, to any queue.
        self.number = 0
        #: For each queue, the time on the monotonic clock until which no call need state how long
        #: its reply is kept. Times that are over are removed when there are more than a few.
        self._told: dict[bytes, float] = {}
        self._few = _FEW

    def is_to_tell(self, kept: bytes, now: float) -> bool:
        """Tell whether a call must state how long to keep its reply; ``kept`` belongs to its
        queue."""
        return now >= self._told.get(kept, 0.0)

    def tell(self, kept: bytes, now: float, until: float) -> None:
        """Note that a call stated it; later calls need not state it ``until`` then."""
        if len(self._told) >= self._few:
            self._told = {one: end for one, end in self._told.items() if end > now}
            self._few = max(2 * len(self._told), _FEW)
        self._told[kept] = until

    def drop(self) -> None:
        """Note that no further call is made in the lane."""
        if self.number:
            dropped.append(self.id)
