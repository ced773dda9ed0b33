"""What says when the cluster and its clients go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Driver(Protocol):
    """Says when the cluster and its clients go on."""

    def clock(self) -> int:
        """Microseconds, which only grow."""

    def step(self) -> None:
        """Come before each call of a client to the cluster: others may go on first."""

    def post(self, job: Callable[[], None]) -> None:
        """Have a job done soon that no client does."""

    def after(self, seconds: float, job: Callable[[], None]) -> None:
        """Have a job done after a time."""

    def fraction(self) -> float:
        """A number between 0 and 1."""

    def call_back(self, callback: Callable[[], None]) -> None:
        """Call a callback of a future that was ready before it was set."""

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Let others go on until it is over, if this driver says which client goes on."""
