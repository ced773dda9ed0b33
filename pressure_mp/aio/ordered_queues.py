"""Queues of asyncio that serve in another order than first in, first out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..engines.contract.queues import How
from ..handles.item import Item
from ..handles.options import QueueOptions
from ..hidden import hide_in
from ..sync import ordered_queues as sync
from ..sync.ordered_queues import ALL_KEYS, FAIR_MAXSIZE
from .awaited import as_in, awaited
from .queues import Queue

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_qsize: Any = awaited(sync.FairQueue.qsize)


class LifoQueue(Queue[Item]):
    """:class:`pressure_mp.LifoQueue` for asyncio."""

    _kind = sync.LifoQueue


@as_in(sync.PriorityQueue)
class PriorityQueue(Queue[Item]):
    """:class:`pressure_mp.PriorityQueue` for asyncio."""

    _kind = sync.PriorityQueue

    def __init__(
        self,
        maxsize: int = 0,
        name: str | None = None,
        *,
        key: Callable[[Item], Any] | None = None,
        **options: Unpack[QueueOptions],
    ) -> None:
        """Make a handle as :class:`pressure_mp.PriorityQueue` does."""
        self._prepare(How.OPEN, maxsize, name, key=key, **hide_in(options))

    @classmethod
    async def create(
        cls,
        name: str,
        maxsize: int = 0,
        *,
        key: Callable[[Item], Any] | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        return await cls._insist(
            How.CREATE, maxsize=maxsize, name=name, key=key, **hide_in(options)
        )

    @classmethod
    async def attach(
        cls,
        name: str,
        maxsize: int = 0,
        *,
        key: Callable[[Item], Any] | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        return await cls._insist(
            How.ATTACH, maxsize=maxsize, name=name, key=key, **hide_in(options)
        )


@as_in(sync.FairQueue)
class FairQueue(Queue[Item]):
    """:class:`pressure_mp.FairQueue` for asyncio."""

    _kind = sync.FairQueue  # type: ignore[assignment]  # its constructor needs a key

    def __init__(
        self,
        key: Callable[[Item], Any],
        maxsize: int | None = FAIR_MAXSIZE,
        name: str | None = None,
        *,
        weight: Callable[[Any], int] | None = None,
        **options: Unpack[QueueOptions],
    ) -> None:
        """Make a handle as :class:`pressure_mp.FairQueue` does."""
        self._prepare(How.OPEN, key, maxsize, name, weight=weight, **hide_in(options))

    @classmethod
    async def create(  # type: ignore[override]  # a FairQueue needs a key
        cls,
        name: str,
        maxsize: int | None = FAIR_MAXSIZE,
        *,
        key: Callable[[Item], Any],
        weight: Callable[[Any], int] | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        own = {"key": key, "weight": weight}
        return await cls._insist(How.CREATE, maxsize=maxsize, name=name, **own, **hide_in(options))

    @classmethod
    async def attach(  # type: ignore[override]
        cls,
        name: str,
        maxsize: int | None = FAIR_MAXSIZE,
        *,
        key: Callable[[Item], Any],
        weight: Callable[[Any], int] | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        own = {"key": key, "weight": weight}
        return await cls._insist(How.ATTACH, maxsize=maxsize, name=name, **own, **hide_in(options))

    snapshot = awaited(sync.FairQueue[Item].snapshot)
    keys = awaited(sync.FairQueue[Item].keys)

    async def qsize(self, *, key: Any = ALL_KEYS) -> int:
        number: int = await _qsize(self, key=key)
        return number
