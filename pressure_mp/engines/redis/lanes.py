"""Calls that are done once, however often they arrive: numbered, one after the other."""

from __future__ import annotations

import secrets
from collections import deque

#: The ids of lanes that were used, and that no call is made in any more: the last so many. Their
#: replies are kept for a while.
dropped: deque[bytes] = deque(maxlen=10_000)

#: So many queues a lane may have used before it looks which of them it can forget.
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
        #: The number of the last call, whichever queue that was on.
        self.number = 0
        #: For each queue, until when no call need say how long its reply is kept, on the monotonic
        #: clock. Times that are over are removed when there are more than a few.
        self._told: dict[bytes, float] = {}
        self._few = _FEW

    def is_to_tell(self, kept: bytes, now: float) -> bool:
        """Whether a call must state how long its reply is kept; ``kept`` belongs to its queue."""
        return now >= self._told.get(kept, 0.0)

    def tell(self, kept: bytes, now: float, until: float) -> None:
        """Note that a call stated it; later calls need not state it ``until`` then."""
        if len(self._told) >= self._few:
            self._told = {one: end for one, end in self._told.items() if end > now}
            self._few = max(2 * len(self._told), _FEW)
        self._told[kept] = until

    def drop(self) -> None:
        """No further call is made in it."""
        if self.number:
            dropped.append(self.id)
