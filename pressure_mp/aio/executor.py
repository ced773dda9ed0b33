"""An executor whose calls are awaited."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator
from concurrent import futures
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..engines.cancelled_calls import read_exception
from ..exceptions import Full, PressureError
from ..executor import executor as sync
from ..executor import mapping
from ..executor.client import Client
from ..executor.executor import client_of
from ..executor.future import drop_callback
from ..executor.ids import CallIds
from ..executor.submitter import Submitter, submit_as, weak_submit_of
from ..hidden import hide_in

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Self

    P = ParamSpec("P")

T = TypeVar("T")

_END: Any = object()

_log = logging.getLogger("pressure_mp")


class Call(Coroutine[Any, Any, T]):
    """A call of an :class:`Executor`: await it for its result, or make a task of it.

    It is submitted when a task awaits it, as any coroutine begins then.
    """

    def __init__(self, id: str, coroutine: Coroutine[Any, Any, T]) -> None:
        #: The call's id: from when it is submitted, :meth:`Executor.result` of any executor that is
        #: attached to the same name waits for it too.
        self.id = id
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """Resume the coroutine (``Coroutine.send``)."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()


class Caller:
    """``submit`` and ``map`` for asyncio."""

    _options: dict[str, Any]

    def _whose(self) -> Executor:
        """The executor whose calls these are."""
        raise NotImplementedError

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        """Let a worker call ``fn(*args, **kwargs)``, wait for the result, and return it.

        What this returns is to be awaited, and has the ``id`` of the call. ``fn`` may be a
        coroutine function: the worker runs it in an event loop of its own. If the asyncio task is
        cancelled while it waits, the call is withdrawn; if a worker has taken the call already, the
        call runs to its end, and its result is dropped. A task that waits for space,
        because of ``max_pending``, has no call yet.

        Raises what the call raised, and what :meth:`pressure_mp.Executor.submit` raises.
        """
        id = self._whose()._ids.next()
        return Call(id, self._run(id, fn, args, kwargs))

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> AsyncIterator[T]:
        """Iterate over the results: ``async for result in executor.map(…)``.

        Takes the arguments of :meth:`pressure_mp.Executor.map`. If the loop ends early, by
        ``aclose()`` or because its task is cancelled, calls that no worker has are withdrawn.
        """
        mapping.check(chunksize, buffersize)
        inputs = zip(*iterables, strict=False)
        return self._each(fn, inputs, timeout, chunksize, buffersize, unordered)

    async def _submitter(self) -> Submitter:
        """Return the object for threads that submits the calls."""
        return (await self._whose()._opened()).options(**self._options)

    async def _run(self, id: str, *call: Any) -> Any:
        """Submit a call, and wait for its result."""
        executor, options = self._whose(), self._options.copy()
        waits = options.pop("block", True)
        submitter = (await executor._opened()).options(**options, block=False)
        submit = partial(submit_as, submitter, id, *call)
        future = await (executor._line.submit(submit) if waits else _in_thread(submit))
        try:
            return await _result(future)
        except asyncio.CancelledError:
            _cancel(asyncio.get_running_loop(), future)
            raise

    async def _each(self, *mapped: Any) -> AsyncIterator[Any]:
        made = _Made(weak_submit_of(await self._submitter()))
        loop = asyncio.get_running_loop()
        thread = futures.ThreadPoolExecutor(1, "map of an executor")
        try:
            results: Iterator[Any] = await loop.run_in_executor(
                thread, mapping.results, made, *mapped
            )
            while (result := await loop.run_in_executor(thread, next, results, _END)) is not _END:
                yield result
        finally:
            thread.shutdown(wait=False)
            # Which also ends a `next` that still waits. That asks the broker, so in a thread.
            loop.run_in_executor(None, made.cancel)


class _Made:
    """Submit the calls of one map, and know which of them are not done."""

    def __init__(self, submit: mapping.Submit) -> None:
        self._submit = submit
        self._futures: set[futures.Future[Any]] = set()
        self._is_over = False

    def __call__(self) -> Callable[..., futures.Future[Any]] | None:
        submit = None if self._is_over else self._submit()
        if submit is None:
            return None

        def noting(*call: Any) -> futures.Future[Any]:
            future = submit(*call)
            self._futures.add(future)
            future.add_done_callback(self._futures.discard)
            if self._is_over:  # since the look above
                future.cancel()
            return future

        return noting

    def cancel(self) -> None:
        """Take back what no worker has."""
        self._is_over = True
        for future in self._futures.copy():
            _withdraw(future)


#: Submits a call, in a thread that does not wait for space.
Submit = Callable[[], futures.Future[Any]]


class _Line:
    """The asyncio tasks that wait for space at one executor. Only the first asks for it; no thread
    waits."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._first = asyncio.Lock()

    async def submit(self, submit: Submit) -> futures.Future[Any]:
        """Submit a call; waits for space before."""
        if self._client.has_space and not self._first.locked():
            with suppress(Full):
                return await _in_thread(submit)
        async with self._first:
            while True:
                await _wait_for_space(self._client)
                with suppress(Full):  # a thread that submits too was faster
                    return await _in_thread(submit)


async def _wait_for_space(client: Client) -> None:
    """Raises ExecutorBroken, ExecutorShutDown."""
    loop = asyncio.get_running_loop()
    there = asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # the loop is closed: no task waits
            loop.call_soon_threadsafe(there.set)

    before, client.tell_fewer = client.tell_fewer, tell
    try:
        while not client.has_space:
            client.check_open()
            await there.wait()
            there.clear()
    finally:
        client.tell_fewer = before


async def _in_thread(submit: Submit) -> futures.Future[Any]:
    """Submit a call in a thread; it is taken back if the task is cancelled meanwhile. The thread
    does that: at the end of a loop, no other one begins."""
    loop = asyncio.get_running_loop()
    submitted: futures.Future[futures.Future[Any]] = futures.Future()
    loop.run_in_executor(None, _submit_for, submitted, submit)
    try:
        return await asyncio.wrap_future(submitted)
    except asyncio.CancelledError:
        if not submitted.cancel() and submitted.exception() is None:
            _cancel(loop, submitted.result())
        raise


def _submit_for(submitted: futures.Future[futures.Future[Any]], submit: Submit) -> None:
    """Submit a call, unless its task was cancelled."""
    if submitted.cancelled():
        return
    try:
        future = submit()
    except BaseException as error:
        if submitted.set_running_or_notify_cancel():
            submitted.set_exception(error)
    else:
        if submitted.set_running_or_notify_cancel():
            submitted.set_result(future)
        else:
            _withdraw(future)


class Executor(Caller):
    """:class:`pressure_mp.Executor` for asyncio; nothing blocks the event loop.

    ``async with``, or the first call, opens it: that connects to the broker.
    """

    def __init__(
        self, max_workers: int | None = None, name: str | None = None, **options: Any
    ) -> None:
        """Make an executor, with the options of :class:`pressure_mp.Executor`; does no I/O."""
        self._make = lambda: sync.Executor(max_workers, name, **hide_in(options))
        self._opening: asyncio.Future[sync.Executor] | None = None
        self._ids = CallIds()
        self._options = {}

    def _whose(self) -> Executor:
        return self

    @classmethod
    async def attach(cls, name: str, max_workers: int = 0, **options: Any) -> Self:
        """Attach to an existing executor; as :meth:`pressure_mp.Executor.attach`."""
        executor = cls(max_workers, name, **hide_in(options))
        executor._make = lambda: sync.Executor.attach(name, max_workers, **hide_in(options))
        await executor.open()
        return executor

    async def open(self) -> Self:
        """Connect to the broker. Raises what the class for threads does when it is made."""
        await self._opened()
        return self

    async def _opened(self) -> sync.Executor:
        """The executor for threads that submits the calls."""
        opening = self._opening
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = asyncio.get_running_loop().run_in_executor(None, self._make)
            opening.add_done_callback(read_exception)  # no task may be left that waits
            self._opening = opening
        return await asyncio.shield(opening)

    @cached_property
    def _line(self) -> _Line:
        assert self._opening is not None, "it is open"
        return _Line(client_of(self._opening.result()))

    def options(self, **options: Any) -> Caller:
        """Return an object that submits calls with these options.

        They are the options of :meth:`pressure_mp.Executor.options`.
        """
        return _WithOptions(self, options)

    async def result(self, id: str) -> Any:
        """Wait for the result of a call by its id; see :meth:`pressure_mp.Executor.future`.

        If the asyncio task is cancelled while it waits, nothing becomes of the call: others may
        wait for it too. To wait for a limited time only, use ``asyncio.wait_for``.
        """
        executor = await self._opened()
        return await _result(await asyncio.to_thread(executor.future, id))

    async def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; as :meth:`pressure_mp.Executor.shutdown`. The task waits."""
        executor = await self._opened()
        await asyncio.to_thread(executor.shutdown, wait, cancel_futures=cancel_futures)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.shutdown()


class _WithOptions(Caller):
    """An executor, for calls with some options."""

    def __init__(self, executor: Executor, options: dict[str, Any]) -> None:
        self._executor = executor
        self._options = options

    def _whose(self) -> Executor:
        return self._executor


def _cancel(loop: asyncio.AbstractEventLoop, future: futures.Future[Any]) -> None:
    """Withdraw the call, in a thread: that asks the broker."""
    loop.run_in_executor(None, _withdraw, future)


def _withdraw(future: futures.Future[Any]) -> None:
    """Withdraw the call of a task that waits no more, and hears of no error."""
    try:
        future.cancel()
    except PressureError as error:
        _log.warning("the call of a cancelled task could not be withdrawn: %s", error)


async def _result(future: futures.Future[T]) -> T:
    """Wait for a future, of which a cancelled wait makes nothing."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: no task waits
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    try:
        await done.wait()
    finally:
        drop_callback(future, tell)  # many waits may end before the call does
    return future.result()
