"""The queues for threads, and the queues for asyncio behind the same interface: a task of one event
loop in another thread makes each call, and the caller waits for it.

So a test that is written for threads runs in both worlds: ``pytestmark =
pytest.mark.usefixtures("world")``.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

import pressure_mp
from pressure_mp import aio
from pressure_mp.sync.handles import Handle

#: Names of classes that there are in both worlds.
NAMES = ("Queue", "JoinableQueue", "LifoQueue", "PriorityQueue", "FairQueue", "PressureQueue")


class World(NamedTuple):
    """What the fixture ``world`` is."""

    replace: Callable[[Any], Any]

    def __call__(self, kind: Any) -> Any:
        """The class that stands for another one in this world; anything else as it is."""
        return self.replace(kind)


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._main(),), daemon=True)
        self._thread.start()
        self._begun.wait()

    async def _main(self) -> None:
        self.loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._begun.set()
        await self._end.wait()
        # Also tasks that a thread of the test begins only now.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def end(self) -> None:
        """As a program ends: its tasks are cancelled."""
        self.loop.call_soon_threadsafe(self._end.set)
        self._thread.join(60)
        assert not self._thread.is_alive(), "the event loop does not end"


class _Caller:
    """The task that makes the calls of one thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._calls: asyncio.Queue[Any] = asyncio.Queue()
        asyncio.run_coroutine_threadsafe(_make(self._calls, loop), loop)

    def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        told: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self.loop.call_soon_threadsafe(self._calls.put_nowait, (coroutine, told))
        return told.result()

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self._calls.put_nowait, None)


async def _next(calls: asyncio.Queue[Any], loop: asyncio.AbstractEventLoop) -> Any:
    try:
        return await calls.get()
    except RuntimeError:
        if not loop.is_closed():
            raise
        return None  # a thread began this task while the loop ended, and now it is garbage


async def _make(calls: asyncio.Queue[Any], loop: asyncio.AbstractEventLoop) -> None:
    while (call := await _next(calls, loop)) is not None:
        coroutine, told = call
        try:
            result = await coroutine
        except BaseException as error:
            # Without this frame: unittest's assertRaises clears an error's frames, which ends this.
            told.set_exception(
                error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
            )
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            told.set_result(result)
        del call, coroutine, told


_loops: dict[int, _Loop] = {}  # by the process
_lock = threading.Lock()
_callers = threading.local()


def block(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine, and wait for it: one task runs all coroutines of one thread."""
    with _lock:
        found = _loops.get(os.getpid()) or _loops.setdefault(os.getpid(), _Loop())
    caller: _Caller | None = getattr(_callers, "of_thread", None)
    if caller is None or caller.loop is not found.loop:
        caller = _callers.of_thread = _Caller(found.loop)
    return caller.call(coroutine)


def end() -> None:
    """The event loop of this process ends, if there is one."""
    found = _loops.pop(os.getpid(), None)
    if found is not None:
        found.end()


class Looped:
    """What the classes for threads are, over a handle of asyncio."""

    _kind: type[Any]
    _aio: Any
    #: How many were made.
    made = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        Looped.made += 1
        self._aio = self._kind(*args, **options)
        if self._aio.sync._at.is_anonymous:  # as a handle of threads is
            block(self._aio.open())

    @classmethod
    def _over(cls, handle: Any) -> Any:
        found = cls.__new__(cls)
        found._aio = handle
        return found

    def __getattr__(self, name: str) -> Any:
        """Tests look into a handle."""
        if not name.startswith("_") or name == "_aio":
            raise AttributeError(name)
        return getattr(self._aio.sync, name)

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                yield block(self._aio.__anext__())
            except StopAsyncIteration:
                return

    def __enter__(self) -> Any:
        assert block(self._aio.__aenter__()) is self._aio
        return self

    def __exit__(self, *exc_info: Any) -> None:
        block(self._aio.__aexit__(*exc_info))

    def __reduce__(self) -> Any:
        block(self._aio.open())  # which a handle of threads does by itself
        return _again, (type(self).__name__, self._aio)


def _again(name: str, handle: Any) -> Any:
    return looped[name]._over(handle)


def _method(name: str) -> Any:
    return lambda self, *args, **options: block(getattr(self._aio, name)(*args, **options))


def _maker(name: str) -> Any:
    def make(cls: type[Looped], *args: Any, **options: Any) -> Any:
        Looped.made += 1
        return cls._over(block(getattr(cls._kind, name)(*args, **options)))

    return classmethod(make)


async def _read(handle: Any, name: str) -> Any:
    return getattr(handle, name)


def _property(name: str, is_coroutine: bool, set_name: str) -> property:
    def get(self: Any) -> Any:
        return block(getattr(self._aio, name)() if is_coroutine else _read(self._aio, name))

    def set(self: Any, value: Any) -> None:
        block(getattr(self._aio, set_name)(value))

    return property(get, set)


def _looped(kind: type[Any], of_asyncio: type[Any]) -> type[Looped]:
    own: dict[str, Any] = {"_kind": of_asyncio}
    for name in dir(kind):
        found = getattr(of_asyncio, name, None)
        if name.startswith("_") or found is None:
            continue
        coroutine = inspect.iscoroutinefunction(found)
        if isinstance(inspect.getattr_static(kind, name), property):
            own[name] = _property(name, coroutine, f"set_{name}")
        elif inspect.ismethod(found):
            own[name] = _maker(name)
        elif coroutine:
            own[name] = _method(name)
    return type(kind.__name__, (Looped,), own)


#: The classes of asyncio for threads, by name.
looped = {name: _looped(getattr(pressure_mp, name), getattr(aio, name)) for name in NAMES}


def replacing(given: Any) -> Any:
    """A class of asyncio for one for threads; anything else as it is."""
    name = getattr(given, "__name__", "")
    return looped[name] if given is getattr(pressure_mp, name, None) and name in NAMES else given


def names_to_replace(module: ModuleType) -> dict[str, Any]:
    """What a test's module calls a class for threads, and the one to put in its place."""
    found = {name: replacing(value) for name, value in vars(module).items()}
    return {name: value for name, value in found.items() if value is not vars(module)[name]}


def is_only_for_threads(given: Any) -> bool:
    """Whether it is a class of queues that there is not in asyncio."""
    is_handle = isinstance(given, type) and issubclass(given, Handle)
    return is_handle and replacing(given) is given
