"""A call that was sent, and whose reply is read later."""

from __future__ import annotations

from typing import Any


class Sent:
    """By itself, or behind a wait over the same connection: then the server does it when the wait
    ends."""

    __slots__ = ("args", "is_sent", "limit", "number", "op", "reads", "wire")

    def __init__(
        self,
        op: str,
        args: tuple[Any, ...],
        wire: Any,
        number: bytes,
        limit: float | None = None,
        reads: bool = False,
    ) -> None:
        self.op = op
        self.args = args
        self.wire = wire
        self.number = number
        #: Seconds for which the wait before it lasts, if there is one that ends by itself.
        self.limit = limit
        #: Whether a command was sent before it that reads.
        self.reads = reads
        #: Whether it is known to have been sent.
        self.is_sent = False
