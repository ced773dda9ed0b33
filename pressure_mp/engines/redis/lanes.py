"""Calls that are done once, however often they arrive: numbered, one after the other."""

from __future__ import annotations

import secrets
import time


class Lane:
    """Calls that the server sees one after the other, numbered for each queue.

    A connection has a lane, and passes it on to the connection that takes its place: so a call
    that is sent again has the same number in the same lane, and the server knows it.
    """

    __slots__ = ("_calls", "id")

    ID_SIZE = 16

    def __init__(self) -> None:
        self.id = secrets.token_hex(self.ID_SIZE // 2).encode()
        self._calls: dict[bytes, list[float]] = {}

    def number(self, queue: bytes, half: float) -> bytes:
        """The number of the next call on a queue.

        When the last number that said so is ``half`` seconds old, it says too for how many
        milliseconds the call's reply is kept: so each is kept for at least ``half`` seconds.
        """
        now = time.monotonic()
        calls = self._calls.get(queue)
        if calls is None:
            calls = self._calls[queue] = [0, now]
        number = calls[0] = calls[0] + 1
        if now < calls[1]:
            return b"%d" % number
        calls[1] = now + half
        return b"%d %d" % (number, round(half * 2000))
