"""The errors that an executor raises and the standard library's does not."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool

from ..exceptions import DecodingError, PressureError, ShutDown


class WorkerLost(PressureError, BrokenProcessPool):
    """A call was given to ``max_deliveries`` workers, and each of them died before the call ended.
    Or one of them had not begun the call, and gave it back.

    Only this call fails; the executor stays usable.
    """


class ExecutorBroken(PressureError, BrokenProcessPool):
    """The executor's workers cannot start: their initializer failed, or they ended too early. Or
    the executor hears no more of its calls: its queue was deleted, or a done-callback exited.

    Calls that no worker has taken are withdrawn; the executor accepts no more calls.
    """


class ExecutorShutDown(ShutDown, RuntimeError):
    """The executor was shut down, or the interpreter is ending: no more calls are accepted."""


class CallDecodingError(DecodingError, BrokenProcessPool):
    """A worker could not unpickle a call, or the caller could not unpickle its result.

    Only this call fails. This is a BrokenProcessPool because the standard library's executor raises
    that in this case.
    """


class CallAborted(PressureError, RuntimeError):
    """The call was removed while a worker had it: by ``Executor.abort``, or by an administrator."""


class CallDropped(PressureError, RuntimeError):
    """No worker took the call within its ``ttl``."""
