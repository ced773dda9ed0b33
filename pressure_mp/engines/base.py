"""What an engine is: the two verbs, bound to one queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ..config import Address
from ..drivers import AsyncSession, Session


class Durability(NamedTuple):
    """Who confirms a put before it returns: so many replicas; with 0, the server's own disk."""

    replicas: int

    def __str__(self) -> str:
        return f"replica:{self.replicas}" if self.replicas else "fsync"


class Options(NamedTuple):
    """How one handle wants to be served."""

    #: Seconds for which a call tries to reach the broker, if it is away or the connection is lost.
    reconnect: float = 10.0
    durability: Durability | None = None
    #: When each call ends at the latest, on the monotonic clock, whatever it waits for: also to
    #: connect, and for the reply of a server that is silent.
    until: float | None = None


DEFAULTS = Options()

#: A queue's name and discipline.
QueueKey = tuple[str, str]


class Binding(Protocol):
    """One queue, as an engine sees it."""

    def session(self) -> Session:
        """Begin an operation of a thread. Does no I/O."""

    def asession(self) -> AsyncSession:
        """Begin an operation of an asyncio task. Does no I/O."""


class Engine(Protocol):
    """One broker. Threads share it; a forked child starts it afresh."""

    address: Address

    outlives_process: bool
    """Whether queues stay when a process that uses them ends."""

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding:
        """The queue of that name and discipline; does no I/O, and the queue need not exist."""

    def rival(self, name: str, discipline: str) -> Binding | None:
        """What else may have this name, beside the queue that ``bind`` gives: a queue of another
        kind, whose keys are others."""

    def remember(self, host: str, name: str, discipline: str, options: Options = DEFAULTS) -> None:
        """Note that processes of ``host`` use the anonymous queue ``name``."""

    def remembered(self, host: str, options: Options = DEFAULTS) -> Iterable[QueueKey]:
        """The anonymous queues that were noted for ``host``."""

    def forget(self, host: str, queues: Sequence[QueueKey], options: Options = DEFAULTS) -> None:
        """Take back :meth:`remember` for each."""

    def leave(self, queues: Sequence[QueueKey], options: Options = DEFAULTS) -> None:
        """This process no longer uses these queues: remove what the broker keeps for it alone."""

    def after_fork(self) -> None:
        """In a forked child: let go of what belongs to the parent, without a word to the broker."""

    def close(self) -> None:
        """Close idle connections. The engine may be used again."""
