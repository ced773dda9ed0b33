"""Wait for descriptors, also where eventlet removed ``select.poll``."""

from __future__ import annotations

import select
from typing import Protocol


class Poll(Protocol):
    """The object that ``select.poll()`` returns."""

    def register(self, fd: int, eventmask: int, /) -> None:
        """Add a descriptor to wait for."""

    def poll(self, milliseconds: float | None = None, /) -> list[tuple[int, int]]:
        """Return the descriptors that are ready; wait for one, at most so long."""


class _Selected:
    """Polls with ``select.select``, which lets eventlet's hub go on."""

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
    """Return a poll object without descriptors."""
    return select.poll() if hasattr(select, "poll") else _Selected()
