"""The backend ``pressure_mp`` of joblib, which this module registers when it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from joblib.parallel import (  # type: ignore[import-untyped]
    AutoBatchingMixin,
    ParallelBackendBase,
    register_parallel_backend,
)

from .exceptions import ArgumentError
from .executor.executor import Executor
from .executor.future import Future

#: Arguments that joblib passes to every backend, for its own processes and files of arrays.
_OF_JOBLIB = frozenset(
    ("context", "max_nbytes", "mmap_mode", "prefer", "require", "temp_folder", "verbose")
)


class PressureBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs joblib's batches as calls of an :class:`pressure_mp.Executor`.

    ``joblib.parallel_config("pressure_mp", executor=executor)`` uses that executor. Without
    ``executor``, each ``Parallel`` makes one with ``n_jobs`` workers, and shuts it down at its end.
    The options of :class:`pressure_mp.Executor`, such as ``initializer``, can be given to
    ``parallel_config`` and to ``Parallel``, whose own take precedence. ArgumentError beside
    ``executor``.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, executor: Executor | None = None, **options: Any) -> None:
        joblibs = {
            name: options.pop(name)
            for name in ("nesting_level", "inner_max_num_threads")
            if name in options
        }
        super().__init__(**joblibs)
        self._given = executor
        self._options = options
        self._executor = executor
        self._futures: set[Future[Any]] = set()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many calls can run at the same time, as far as this process knows."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        if n_jobs > 0:
            return n_jobs
        given = self._given.max_workers if self._given is not None else 0
        workers = given or Executor.default_workers()
        return max(1, workers + 1 + n_jobs)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:
        """Begin a ``Parallel``, with the options that it was given for its backend."""
        self.parallel = parallel
        number = self.effective_n_jobs(n_jobs)
        given = {name: value for name, value in options.items() if name not in _OF_JOBLIB}
        given = {**self._options, **given}
        if self._given is None:
            self._executor = Executor(number, **given)
        elif given:
            raise ArgumentError(
                f"joblib has an executor= already: give {', '.join(sorted(given))} to that Executor"
            )
        return number

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None
    ) -> Future[Any]:
        """Submit a batch."""
        assert self._executor is not None, "it is configured"
        future = self._executor.submit(func)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    #: The name that joblib before 1.5 calls.
    apply_async = submit

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """Return the result of a batch. Raises the batch's exception."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """End all batches: first the batches that no worker has, so that none begins meanwhile; for
        the others, kill the worker processes."""
        assert self._executor is not None, "it is configured"
        there = self._futures.copy()
        for future in [one for one in there if not one.cancel()]:
            self._executor.abort(future)

    def terminate(self) -> None:
        """End the ``Parallel``."""
        self.reset_batch_stats()
        if self._given is None and self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None


register_parallel_backend("pressure_mp", PressureBackend)
