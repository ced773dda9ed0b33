"""To wait for descriptors, also where eventlet took ``select.poll`` away."""

from __future__ import annotations

import select
from typing import Protocol


class Poll(Protocol):
    """What ``select.poll()`` makes."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """Wait for it from now on."""

    def poll(self, milliseconds: float | None = None, /) -> list[tuple[int, int]]:
        """Those that are ready; waits for one, at most so long."""


class _Selected:
    """The same over ``select.select``, which waits so that eventlet's hub goes on."""

    def __init__(self) -> None:
        self._reads: list[int] = []
        self._writes: list[int] = []

    def register(self, fd: int, eventmask: int, /) -> None:
        (self._reads if eventmask & select.POLLIN else self._writes).append(fd)

    def poll(self, milliseconds: float | None = None, /) -> list[tuple[int, int]]:
        seconds = None if milliseconds is None else milliseconds / 1000
        reads, writes, _ = select.select(self._reads, self._writes, [], seconds)
        return [(fd, select.POLLIN) for fd in reads] + [(fd, select.POLLOUT) for fd in writes]


def new_poll() -> Poll:
    """One that waits for nothing yet."""
    return select.poll() if hasattr(select, "poll") else _Selected()
