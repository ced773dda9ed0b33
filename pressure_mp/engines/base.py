"""What an engine is: the two verbs, bound to one queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ..drivers import AsyncSession, Session


class Binding(Protocol):
    """One queue, as an engine sees it."""

    def session(self) -> Session:
        """Begin an operation of a thread. Does no I/O."""

    def asession(self) -> AsyncSession:
        """Begin an operation of an asyncio task. Does no I/O."""


class Engine(Protocol):
    """One broker. Threads share it; a forked child starts it afresh."""

    def bind(self, name: str, discipline: str) -> Binding:
        """The queue of that name and discipline; does no I/O, and the queue need not exist."""

    def remember(self, host: str, name: str) -> None:
        """Note that processes of ``host`` use the anonymous queue ``name``."""

    def remembered(self, host: str) -> Iterable[str]:
        """The anonymous queues that were noted for ``host``."""

    def forget(self, host: str, name: str) -> None:
        """Take back :meth:`remember`."""

    def after_fork(self) -> None:
        """In a forked child: let go of what belongs to the parent, without a word to the broker."""

    def close(self) -> None:
        """Close idle connections. The engine may be used again."""
