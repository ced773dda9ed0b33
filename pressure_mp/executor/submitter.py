"""The interface that submits calls: an executor, or an executor with some options."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from . import mapping
from .call_queue import Options
from .future import Future

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")


class Submitter:
    """``submit`` and ``map``, as in :class:`concurrent.futures.Executor`."""

    #: Its calls' options, and whether to wait for space.
    _how: tuple[Options, bool] = (Options(), True)

    def _whose(self) -> Any:
        """Return the executor whose calls these are."""
        return self

    def _submit(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        id: str | None = None,
    ) -> Future[T]:
        """Submit a call. ``id`` is an id that no call has; with None, the call gets one."""
        future: Future[T] = self._whose()._submit_with(*self._how, fn, args, kwargs, id)
        return future

    def _weakly(self) -> mapping.Submit:
        """Return its ``submit``, as long as the executor exists."""
        return weakref.WeakMethod(self.submit)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Let a worker call ``fn(*args, **kwargs)``; returns the future of the call.

        The future is running from the moment when a worker takes the call. Before that,
        ``cancel()`` withdraws the call, and no worker gets it. If the call cannot be pickled, the
        future has the error; if the call or its result cannot be unpickled, it has
        CallDecodingError. If the function exits, the future has its SystemExit.

        Blocks while ``max_pending`` calls wait for workers. On a named executor, and when no other
        call is pending, it also blocks for one round trip to the broker. Raises ExecutorShutDown (a
        RuntimeError), ExecutorBroken (a BrokenProcessPool), and Full with ``options(block=False)``
        or in a callback of a future, where it must not wait for ``max_pending``. On a named
        executor it also raises what :meth:`pressure_mp.TaskQueue.put` raises; on an executor
        without a name, the future has that error. (``concurrent.futures.Executor.submit``)
        """
        return self._submit(fn, args, kwargs)

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[T]:
        """Iterate over the results of ``fn(*args)`` for each ``args`` of ``zip(*iterables)``.

        :param timeout: seconds from this call on; when they are over and results are missing,
            the iterator raises TimeoutError, and calls that no worker has taken are cancelled.
        :param chunksize: how many inputs are sent to a worker as one call.
        :param buffersize: how many calls may be submitted whose results were not yet yielded (as in
            Python 3.14), so that endless iterables are not read to the end. None: submit all at
            once.
        :param unordered: yield each result as soon as it is there, not in the order of the inputs.

        Blocks as :meth:`submit` does; the iterator blocks until the next result is there. It raises
        what the function raised; then calls that no worker has taken are cancelled.
        (``concurrent.futures.Executor.map``)
        """
        mapping.check(chunksize, buffersize)
        inputs = zip(*iterables, strict=False)
        return mapping.results(
            self._weakly(), fn, inputs, timeout, chunksize, buffersize, unordered
        )


class WithOptions(Submitter):
    """Submits calls to an executor, with some options."""

    def __init__(self, executor: Submitter, options: Options, block: bool) -> None:
        self._executor = executor
        self._how = options, block

    def _whose(self) -> Any:
        return self._executor

    def _weakly(self) -> mapping.Submit:
        there, how = weakref.ref(self._executor), self._how

        def submit() -> Callable[..., Future[Any]] | None:
            executor = there()
            return None if executor is None else WithOptions(executor, *how).submit

        return submit


def submit_as(
    submitter: Submitter,
    id: str,
    fn: Callable[..., T],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Future[T]:
    """Submit a call whose id was chosen before: the executor of asyncio does."""
    return submitter._submit(fn, args, kwargs, id)


def weak_submit_of(submitter: Submitter) -> mapping.Submit:
    """Return the method ``submit``, as long as the executor exists."""
    return submitter._weakly()
