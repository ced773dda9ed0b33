"""What one handle has on this side of the wire in one event loop."""

from __future__ import annotations

from .buffered_put import DirectPut
from .incoming import Reserving


class Buffers:
    """What was put through it and is not yet sent, and what it read ahead; if anything."""

    __slots__ = ("incoming", "outgoing")

    def __init__(self) -> None:
        self.outgoing = DirectPut()
        self.incoming: Reserving | None = None

    def __len__(self) -> int:
        """How many items were put and are not at the broker."""
        return len(self.outgoing)

    async def settle(self) -> None:
        """Wait until the broker has what was put, as far as there is space."""
        await self.outgoing.settle()

    async def flush(self) -> None:
        """Wait until the broker has it. Raises what went wrong with that."""
        await self.outgoing.flush()

    def discard(self) -> None:
        """What was put and is not on its way is not sent any more."""
        self.outgoing.discard()

    async def give_back(self) -> None:
        """Return the items that are reserved here."""
        if self.incoming is not None:
            await self.incoming.give_back()
