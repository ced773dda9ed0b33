"""How a dashboard is to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..exceptions import ArgumentError

#: Characters of a token, at least: a shorter one can be guessed.
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Settings:
    """What a dashboard shows, and to whom.

    ``token`` is the secret that everyone must give first, 16 characters or more; without it,
    everyone who can connect sees everything. ``allow_actions`` lets the pages change queues.
    ``show_content`` lets them show the content of items. ``hosts`` are the names under which it is
    reached, beside ``localhost`` and addresses in digits: requests for another one are refused.
    Queues are looked at every ``interval`` seconds, while somebody looks at a page.

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
                f"{SHORTEST_TOKEN} or more, as of secrets.token_urlsafe()"
            )
        if not self.interval > 0:
            raise ArgumentError(f"interval={self.interval!r} is not more than 0 seconds")
