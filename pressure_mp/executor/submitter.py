"""What submits calls: an executor, or one with some options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from . import mapping
from .future import Future

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")


class Submitter:
    """``submit`` and ``map``, as of :class:`concurrent.futures.Executor`."""

    def _submit(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Future[T]:
        raise NotImplementedError

    def _weakly(self) -> mapping.Submit:
        """Its ``submit``, as long as there is the executor."""
        raise NotImplementedError

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have ``fn(*args, **kwargs)`` called by a worker; returns its future at once.

        The future is running from when a worker takes the call. Until then ``cancel()`` takes it
        back, and no worker gets it. What cannot be pickled fails the future; so does what cannot be
        unpickled, here or there (CallDecodingError). An exit in the function is that future's
        SystemExit.

        Blocks while ``max_pending`` calls wait for workers; on a named executor, and for a call
        while no other is pending, also for one round trip to the broker. Raises ExecutorShutDown (a
        RuntimeError), ExecutorBroken (a BrokenProcessPool); Full for ``options(block=False)``; on a
        named executor also what :meth:`pressure_mp.TaskQueue.put` raises. On one without a name
        that fails the future.
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
        """An iterator over ``fn(*args)`` for what ``zip(*iterables)`` gives, as of the standard
        library's ProcessPoolExecutor.

        :param timeout: seconds from this call on in which all results are to be had; then
            TimeoutError is raised, and what no worker took is cancelled.
        :param chunksize: so many inputs go to a worker as one call.
        :param buffersize: as of Python 3.14: at most so many calls are submitted whose results were
            not yet handed out, so that of endless inputs no more are drawn. None: all at once.
        :param unordered: hand out what is done first.

        Blocks as :meth:`submit` does; the iterator blocks until the next result is there. It raises
        what the function raised, and then the rest is cancelled.
        """
        mapping.check(chunksize, buffersize)
        inputs = zip(*iterables, strict=False)
        return mapping.results(
            self._weakly(), fn, inputs, timeout, chunksize, buffersize, unordered
        )
