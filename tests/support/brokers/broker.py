"""What each engine's class of brokers says: how a broker is started, and how tests see into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar


class Broker:
    """A broker for tests. What tests see in it, they see without the requests of its engine."""

    #: What the URLs of its engine begin with.
    scheme: ClassVar[str]
    #: Options with which it has on disk what it acknowledged.
    durable: ClassVar[tuple[str, ...]] = ()
    #: By their dotted names, the times after which a waiter of this engine looks by itself.
    looks: ClassVar[tuple[str, ...]] = ()
    #: By their dotted names, the times for which a client relies on what it was told.
    trusts: ClassVar[tuple[str, ...]] = ()
    #: How much a client does while one of the fastest engine does 1.
    pace: ClassVar[float] = 1

    @staticmethod
    def is_there() -> bool:
        """Whether it can be started here."""
        return True

    @classmethod
    def of(cls, kind: str, options: tuple[str, ...]) -> Any:
        """A broker that is not yet started."""
        return cls(*options)

    def start(self) -> Any:
        """Start it, and return it when it serves."""
        return self

    def prepare(self) -> None:
        """Make what its engine, and users with few rights, need at a new broker."""

    def check(self) -> None:
        """Assert what must be true after all tests."""

    @contextmanager
    def serving(self) -> Iterator[Any]:
        """Start and prepare it; it stops when the block ends."""
        try:
            self.start()
            self.prepare()
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        """End it, and remove its files."""

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The URL of a user that may do everything."""
        raise NotImplementedError

    @property
    def limited_url(self) -> str:
        """The URL of a user with the rights in the documents, and no others."""
        return self.url

    def url_for(self, name: str, limited: bool = True) -> str:
        """The URL for a test whose queue has that name."""
        return self.limited_url if limited else self.url

    @contextmanager
    def alone(self, name: str) -> Iterator[str]:
        """A URL; ``connections`` counts only those that are made with it."""
        raise NotImplementedError

    def has_loaded(self) -> bool:
        """Whether a broker that was started again has read its data from the disk."""
        return True

    def clock(self) -> int:
        """The broker's time, in milliseconds."""
        raise NotImplementedError

    def leases(self, name: str, discipline: str) -> list[tuple[str, int]]:
        """Each client that takes from a queue, and when its lease ends by the broker's clock."""
        raise NotImplementedError

    def kept(self, name: str) -> list[Any]:
        """The data that it keeps for good for queues with this text in their names or prefixes."""
        raise NotImplementedError

    def results(self, name: str) -> list[int]:
        """How many results, inboxes, chunks, notices, times and unique keys it keeps of a queue of
        tasks."""
        raise NotImplementedError

    @staticmethod
    def waiters(engine: Any, binding: Any) -> int:
        """How many operations wait: at the whole broker, or on this queue if it is in memory."""
        raise NotImplementedError

    @staticmethod
    def held(engine: Any, binding: Any) -> list[str]:
        """The waiters and roles that are left on an unused queue: there should be none."""
        raise NotImplementedError

    @staticmethod
    def connections(engine: Any, binding: Any) -> int:
        """How many connections there are to it, without the one that asks; see ``alone``."""
        raise NotImplementedError

    @staticmethod
    def contents(engine: Any, handle: Any, what: str) -> int:
        """How many ``chunks`` of a queue's large items it has, or ``uploads``: contents that it
        keeps for a time or while they are queued."""
        raise NotImplementedError
