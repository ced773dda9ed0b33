"""The settings of a dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..exceptions import ArgumentError

#: The fewest characters of a token: a shorter one can be guessed.
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Settings:
    """The settings of a dashboard.

    ``token`` is the secret that a browser must send first, 16 characters or more; without it, every
    browser that can connect sees everything. ``allow_actions`` lets the pages change queues.
    ``show_content`` lets them show the content of items. ``hosts`` are the names under which it is
    reached, beside ``localhost`` and addresses in digits: requests for another name are refused.
    The queues are read every ``interval`` seconds, while a browser shows a page.

    Raises ArgumentError for a token that is too short, and an interval that is not more than 0.
    """

    token: str | None = field(default=None, repr=False)
    allow_actions: bool = False
    show_content: bool = False
    hosts: Sequence[str] = ()
    interval: float = 2.0

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ArgumentError(
                f"a token of {len(self.token)} characters can be guessed: give one of "
                f"{SHORTEST_TOKEN} or more, such as from secrets.token_urlsafe()"
            )
        if not self.interval > 0:
            raise ArgumentError(f"interval={self.interval!r} is not more than 0 seconds")
