"""Commands that are not scripts, and may be done twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..contract.session import Options
from ..retries import patience
from .errors import not_done, refusal
from .loading import is_missing
from .outage import Outage
from .packing import pack_command
from .pool import Pool
from .scripts import Script

T = TypeVar("T")


class PlainCommands:
    """The commands of one caller, over the connections of a pool; retried for as long as
    ``options`` say."""

    def __init__(self, pool: Pool, options: Options) -> None:
        self._pool = pool
        self._options = options

    async def slots(self) -> list[int]:
        """List one slot of each server that has queues."""
        return await self._trying(self._pool.slots)

    async def request(self, slot: int, command: str, *args: Any) -> Any:
        """Send a command to the server of ``slot``, and return the reply. Raises BrokerError for an
        error reply."""
        return await self.exchange(slot, command, pack_command((command, *args)))

    async def exchange(
        self, slot: int, command: str, packed: bytes, script: Script | None = None
    ) -> Any:
        """Do what :meth:`request` does, for a packed command. Loads the script that it calls into a
        server that does not have it."""
        address = self._pool.address

        async def ask(limit: float | None) -> Any:
            async with self._pool.borrowed(slot, limit) as wire:
                reply = await wire.exchange(packed, limit)
                if script is not None and is_missing(reply):
                    await wire.request("SCRIPT", "LOAD", script.source, timeout=limit)
                    reply = await wire.exchange(packed, limit)
                if isinstance(reply, Exception) and (not_now := not_done(str(reply), address)):
                    raise not_now
                return reply

        reply = await self._trying(ask)
        if isinstance(reply, Exception):
            raise refusal(str(reply), address, command)
        return reply

    async def _trying(self, ask: Callable[[float | None], Awaitable[T]]) -> T:
        """Call ``ask`` with the seconds that it has for a reply, again and again while the broker
        is lost, and return its result."""
        outage = Outage(self._pool, self._options)
        while True:
            try:
                return await ask(patience(None, self._pool.silence, self._options.until))
            except OSError as error:
                await outage.ride_out(error)
