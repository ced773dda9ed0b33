"""Retries of one call to a server, or to the nodes of a cluster."""

from __future__ import annotations

from ..contract.session import Options
from ..retries import Retries
from .errors import Moved
from .pool import Pool

#: The most times that one call is sent on at once from one node of a cluster to another.
_MOST_MOVES = 16


class Outage(Retries):
    """The retries of a call over the connections of a pool."""

    _pool: Pool

    def __init__(
        self, pool: Pool, options: Options, end: float | None = None, tried: float | None = None
    ) -> None:
        super().__init__(pool, options, end, tried)
        self._moves = 0

    @property
    def end(self) -> float | None:
        """The time until which to wait for a reply; None for no limit."""
        return None if self._end is None else self.until

    async def ride_out(self, error: OSError) -> None:
        """Wait before the next try; raise BrokerUnavailable when there is no time for one."""
        if isinstance(error, Moved) and self._moves < _MOST_MOVES:
            self._moves += 1
        elif not await self.pause(error):
            raise self._pool.translate(error) from error

    def tell(self, error: OSError, left: float) -> None:
        self._pool.tell(error, left)
