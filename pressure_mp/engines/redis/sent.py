"""A call that was sent, and whose reply is read later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Sent:
    """By itself, or behind a wait over the same connection: then the server does it when the wait
    ends."""

    op: str
    args: tuple[Any, ...]
    wire: Any
    number: bytes
    #: Seconds for which the wait before it lasts, if there is one that ends by itself.
    limit: float | None = None
    #: Whether a command was sent before it that reads.
    reads: bool = False
    #: Whether it is known to have been sent.
    is_sent: bool = False
