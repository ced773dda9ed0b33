"""What an executor raises beside what the standard library's does."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool

from ..exceptions import DecodingError, PressureError, ShutDown


class WorkerLost(PressureError, BrokenProcessPool):
    """Every worker that a call was given to died before the call ended, ``max_deliveries`` times.

    Only that call fails: the executor goes on.
    """


class ExecutorBroken(PressureError, BrokenProcessPool):
    """The executor's workers cannot start: their initializer failed, or they ended before they were
    ready. What nobody took is withdrawn; the executor takes no more calls."""


class ExecutorShutDown(ShutDown, RuntimeError):
    """The executor was shut down, or the interpreter is ending: it takes no more calls."""


class CallDecodingError(DecodingError, BrokenProcessPool):
    """A worker could not unpickle a call, or the caller could not unpickle its result.

    Only that call fails. It is a BrokenProcessPool because that is what the standard library's
    executor raises then.
    """


class CallAborted(PressureError, RuntimeError):
    """The call was removed while a worker had it: by ``Executor.abort``, or by an administrator."""


class CallDropped(PressureError, RuntimeError):
    """No worker took the call within its ``ttl``."""
