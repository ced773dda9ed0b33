"""Calls that are done once, however often they arrive: numbered, one after the other."""

from __future__ import annotations

import secrets


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
