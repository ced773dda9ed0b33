"""Queues in asyncio: the operations that the classes of the package run, by the other driver."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from pressure_mp import JoinableQueue, Queue
from pressure_mp.drivers import adrive
from pressure_mp.effects import AnyOperation
from pressure_mp.in_flight import Asking, Claim

T = TypeVar("T")

#: What programs of the standard library call.
_VERBS = (
    *("put", "get", "put_nowait", "get_nowait", "qsize", "empty", "full"),
    *("task_done", "join", "shutdown"),
)
_PROPERTIES = ("is_shutdown", "unfinished_tasks")


class Twin:
    """What a Queue is in asyncio. Each method checks its arguments as the queue's own does, and
    runs one operation."""

    def __init__(self, queue: Queue[Any]) -> None:
        self.queue = queue
        self._operations, self._binding = queue._operations, queue._binding

    async def _run(self, operation: AnyOperation[T]) -> T:
        assert self._binding is not None
        return await adrive(operation, self._binding.asession())

    async def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        seconds, order = self.queue._seconds(timeout), self.queue._order(item)
        await self._run(self._operations.put_object(item, block, seconds, order))

    async def put_many(self, items: Sequence[Any], timeout: float | None = None) -> None:
        orders = self.queue._orders(items)
        await self._run(self._operations.put_objects(items, True, timeout, orders))

    async def get(self, block: bool = True, timeout: float | None = None) -> Any:
        return await self._run(self._operations.get_object(block, self.queue._seconds(timeout)))

    async def get_many(self, limit: int, timeout: float | None = None) -> list[Any]:
        found, _ = await self._run(self._operations.get_objects(limit, True, timeout))
        return found

    async def put_nowait(self, item: Any) -> None:
        await self.put(item, False)

    async def get_nowait(self) -> Any:
        return await self.get(False)

    async def qsize(self) -> int:
        return await self._run(self._operations.length())

    async def empty(self) -> bool:
        return await self.qsize() == 0

    async def full(self) -> bool:
        stats = await self._run(self._operations.stats())
        return 0 < stats.maxsize <= stats.length

    async def task_done(self) -> None:
        await self._run(self._operations.task_done())

    async def join(self) -> None:
        await self._run(self._operations.join())

    async def shutdown(self, immediate: bool = False) -> None:
        await self._run(self._operations.close(True, None, once=False, immediate=immediate))

    async def is_shutdown(self) -> bool:
        return await self._run(self._operations.closed())

    async def unfinished_tasks(self) -> int:
        return (await self._run(self._operations.stats())).unfinished

    async def rejected(self) -> list[bytes]:
        return await self._run(self._operations.rejected_with_content(100))


class JoinableTwin(Twin):
    """What a JoinableQueue is."""

    queue: JoinableQueue[Any]

    async def get(self, block: bool = True, timeout: float | None = None) -> Any:
        (found,) = await self._take(1, block, self.queue._seconds(timeout))
        return found

    async def get_many(self, limit: int, timeout: float | None = None) -> list[Any]:
        return await self._take(limit, True, timeout)

    async def _take(self, limit: int, block: bool, timeout: float | None) -> list[Any]:
        here, claim = self.queue._here, Claim(asyncio.current_task())
        found, _ = await self._run(
            self._operations.take_objects(here, claim, self.queue._limit, limit, block, timeout)
        )
        return found

    async def task_done(self) -> None:
        asking = Asking(asyncio.current_task())
        await self._run(self._operations.acknowledge_next(self.queue._here, asking))
        if asking.held is not None:
            asking.held.is_done = True


def twin_of(queue: Queue[Any]) -> Twin:
    """The same queue in asyncio."""
    return JoinableTwin(queue) if isinstance(queue, JoinableQueue) else Twin(queue)


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="loop of the twins", daemon=True).start()
    return loop


def _blocking(name: str) -> Any:
    def call(self: Any, *args: Any, **options: Any) -> Any:
        coroutine: Coroutine[Any, Any, Any] = getattr(self._twin, name)(*args, **options)
        return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result()

    return call


def _maxsize(self: Any) -> int:
    bound: int = self._twin.queue.maxsize
    return bound


def _set_maxsize(self: Any, maxsize: int) -> None:
    self._twin.queue.maxsize = maxsize


def looped(kind: type[Queue[Any]]) -> type:
    """A class for threads, over the twin of a class: each call is a task of one event loop."""

    def make(self: Any, *args: Any, **options: Any) -> None:
        self._twin = twin_of(kind(*args, **options))

    # CPython's tests look up the order that they expect by the class's name.
    name = kind.__name__.replace("Joinable", "")
    own = {"__init__": make, "maxsize": property(_maxsize, _set_maxsize)}
    properties = {name: property(_blocking(name)) for name in _PROPERTIES}
    return type(name, (), own | properties | {verb: _blocking(verb) for verb in _VERBS})
