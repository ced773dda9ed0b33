"""Numbers and times, as parts of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


def duration(seconds: float) -> str:
    """Write a time that has passed, in one unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


class Standing(Protocol):
    """Whether a queue is shut down, and the parts of it that are paused."""

    @property
    def closed(self) -> bool: ...

    @property
    def paused(self) -> bool: ...

    @property
    def paused_tubes(self) -> Sequence[str]: ...


def standing(queue: Standing) -> str:
    """Say whether a queue is shut down, and whether it, or tubes, are paused; "" if neither."""
    said = ["shut down"] if queue.closed else []
    if queue.paused:
        said.append("paused")
    if queue.paused_tubes:
        said.append(f"{some(len(queue.paused_tubes), 'tube')} paused")
    return ", ".join(said)


def some(number: int, what: str) -> str:
    """Write a number of things."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def are(number: int, what: str) -> str:
    """Write a number of things, as the beginning of a sentence about them."""
    return f"{some(number, what)} {'is' if number == 1 else 'are'}"
