"""Calls that were sent: their connection, their number, and their outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from .lanes import Lane
from .wire import Carrier


@dataclass(slots=True, eq=False)
class SentCall:
    """A call that was sent, and whose reply is read later.

    It is sent alone, or behind a wait over the same connection: then the server does it when the
    wait ends.
    """

    op: str
    args: tuple[Any, ...]
    wire: Any
    number: bytes
    #: Seconds for which the wait before it lasts, if there is one that ends by itself.
    limit: float | None = None
    #: Whether a command that reads was sent before it.
    reads: bool = False
    #: Whether it is known to have been sent.
    is_sent: bool = False


class Attempt(NamedTuple):
    """A call that was made once, and its outcome: a reply or an OSError.

    No other operation uses the connection. It may have been given another lane meanwhile.
    """

    wire: Carrier
    lane: Lane
    number: bytes
    outcome: Any
