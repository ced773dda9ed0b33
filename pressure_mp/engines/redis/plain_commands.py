"""PlainCommands that are no scripts, and may be done twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..contract.session import Options
from .errors import not_done, refusal
from .loading import is_missing
from .outage import Outage, patience
from .packing import pack_command
from .pool import Pool
from .scripts import Script

T = TypeVar("T")


class PlainCommands:
    """Those of one caller, over the connections of a pool; tried as long as ``options`` say."""

    def __init__(self, pool: Pool, options: Options) -> None:
        self._pool = pool
        self._options = options

    async def slots(self) -> list[int]:
        """One slot of each server that has queues."""
        return await self._trying(self._pool.slots)

    async def request(self, slot: int, command: str, *args: Any) -> Any:
        """The reply of the server that has ``slot``. Raises BrokerError for an error reply."""
        return await self.exchange(slot, command, pack_command((command, *args)))

    async def exchange(
        self, slot: int, command: str, packed: bytes, script: Script | None = None
    ) -> Any:
        """:meth:`request` for a command that is packed already. The server is given the script
        that it calls, if it does not have that."""
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
        """What ``ask`` returns, which is given the seconds that it has for a reply; again and again
        as long as the broker is lost."""
        outage = Outage(self._pool, self._options)
        while True:
            try:
                return await ask(patience(None, self._pool.silence, self._options.until))
            except OSError as error:
                await outage.ride_out(error)
