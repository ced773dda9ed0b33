"""A call whose reply nobody has waited for, as the connection sees it over which it was sent."""

from __future__ import annotations

from typing import Any, Protocol


class Unheard(Protocol):
    """Who reads from the connection next hears that reply first, and settles it."""

    def settle(self, outcome: Any) -> None:
        """The reply, or the OSError because of which there is none. Raises nothing."""
