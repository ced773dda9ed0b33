"""The future of a call: a future of the standard library, which asks the broker before it is
cancelled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class CallControl(Protocol):
    """Asks the broker about a future's call, and withdraws it."""

    def is_taken(self, future: Future[T]) -> bool:
        """Tell whether a worker has the call now."""

    def cancel(self, future: Future[T]) -> bool:
        """Withdraw the call if no worker has it; return whether the future is cancelled."""


class Future(futures.Future[T]):
    """The future of a call of an :class:`Executor` (``concurrent.futures.Future``).

    ``wait``, ``as_completed`` and ``asyncio.wrap_future`` work with it. It is running from the
    moment when a worker takes the call.
    """

    def __init__(self, id: str, control: CallControl) -> None:
        super().__init__()
        #: The call's id: with it ``Executor.attach(name).future(id)`` gives the future again.
        self.id = id
        self._control = control
        #: Whether the broker is asked just now to withdraw the call.
        self.is_leaving = False

    def cancel(self) -> bool:
        """Withdraw the call; returns whether the future is cancelled.

        That is not possible when a worker has taken the call, or it has ended; nor in a forked
        child of the executor's process. Blocks for one round trip to the broker. Raises
        BrokerUnavailable when the broker does not answer; then the future is not cancelled.
        """
        if self.done():
            return self.cancelled()
        return not super().running() and self._control.cancel(self)

    def running(self) -> bool:
        """Tell whether a worker has the call now, or had it and is known to have died since.

        Blocks for one round trip to the broker if this process does not know it yet. Raises
        BrokerUnavailable.
        """
        if not super().running() and not self.done() and self._control.is_taken(self):
            self._set_running()
        return super().running()

    def _set_running(self) -> None:
        """Note that a worker has the call."""
        with self._condition:
            if self._state == "PENDING":
                self.set_running_or_notify_cancel()

    def _set_cancelled(self) -> bool:
        """Cancel the future, as the broker will not give the call to any worker; return whether it
        is cancelled, which it is not if it was running."""
        with self._condition:
            if super().cancel() and self._state == "CANCELLED":
                self.set_running_or_notify_cancel()
        return self.cancelled()


def drop_callback(future: futures.Future[Any], callback: Callable[[Any], object]) -> None:
    """Remove a callback from a future, unless the future is done: then its callbacks run now."""
    waiting: Any = future
    with waiting._condition:
        if not waiting.done():
            waiting._done_callbacks.remove(callback)
