"""The future of a call: one of the standard library's, that asks the broker before it is
cancelled."""

from __future__ import annotations

from concurrent import futures
from typing import Protocol, TypeVar

T = TypeVar("T")


class Canceller(Protocol):
    """What withdraws calls."""

    def cancel(self, future: Future[T]) -> bool:
        """Withdraw the call if no worker has it; whether the future is cancelled."""


class Future(futures.Future[T]):
    """A call that runs wherever a worker takes it; ``wait``, ``as_completed`` and
    ``asyncio.wrap_future`` work on it as on any other.

    It is running from when a worker takes it, and not before.
    """

    def __init__(self, id: str, canceller: Canceller) -> None:
        super().__init__()
        #: The call's id: with it ``Executor.attach(name).future(id)`` gives the future again.
        self.id = id
        self._canceller = canceller

    def cancel(self) -> bool:
        """Withdraw the call; returns whether the future is cancelled.

        It is not when a worker has taken it, or it is done. Blocks for one round trip to the
        broker. Raises BrokerUnavailable when the broker does not answer; then it goes on.
        """
        if self.done():
            return self.cancelled()
        return not self.running() and self._canceller.cancel(self)

    def _set_cancelled(self) -> None:
        """The broker will not give the call to anybody: who waits is told."""
        if super().cancel():
            self.set_running_or_notify_cancel()
