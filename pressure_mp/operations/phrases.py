"""Numbers and times, as parts of sentences."""

from __future__ import annotations

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """Write a time that has passed, in one unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def standing(closed: bool, paused: bool, paused_tubes: Sequence[str]) -> str:
    """Say whether a queue is shut down, and what of it is paused; nothing if neither."""
    said = ["shut down"] if closed else []
    if paused:
        said.append("paused")
    if paused_tubes:
        said.append(f"{some(len(paused_tubes), 'tube')} paused")
    return ", ".join(said)


def some(number: int, what: str) -> str:
    """Write a number of things."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def are(number: int, what: str) -> str:
    """Write a number of things, as the beginning of a sentence about them."""
    return f"{some(number, what)} {'is' if number == 1 else 'are'}"
