"""The pressure protocol itself, in bytes, for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engines.contract.queues import How
from ..handles.options import ConnectionOptions, SignatureOf
from ..hidden import hide_in
from ..sync import pressure_queue as sync
from .awaited import awaited
from .handles import ItemHandle

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class PressureQueue(ItemHandle):
    """:class:`pressure_mp.PressureQueue` for asyncio: what each method does is said there."""

    _kind = sync.PressureQueue
    __signature__ = SignatureOf(ConnectionOptions)

    def __init__(self, name: str, **options: Unpack[ConnectionOptions]) -> None:
        """Make a handle as :class:`pressure_mp.PressureQueue` does."""
        self._prepare(How.ATTACH, name, **hide_in(options))

    @classmethod
    def of(cls, handle: sync.PressureQueue) -> Self:
        """Make a handle for asyncio to the queue of a handle for threads; see :meth:`Handle.of`."""
        return super().of(handle)

    create = awaited(sync.PressureQueue.create)
    length = awaited(sync.PressureQueue.length)
    closed = awaited(sync.PressureQueue.closed)
    put = awaited(sync.PressureQueue.put)
    put_nowait = awaited(sync.PressureQueue.put_nowait)
    put_many = awaited(sync.PressureQueue.put_many)
    get_many = awaited(sync.PressureQueue.get_many)
    get = awaited(sync.PressureQueue.get)
    get_nowait = awaited(sync.PressureQueue.get_nowait)
    close = awaited(sync.PressureQueue.close)
    close_nowait = awaited(sync.PressureQueue.close_nowait)
    unlock = awaited(sync.PressureQueue.unlock)
    delete = awaited(sync.PressureQueue.delete)
    delete_nowait = awaited(sync.PressureQueue.delete_nowait)

    _take = ItemHandle._run
