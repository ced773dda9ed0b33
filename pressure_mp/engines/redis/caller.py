"""What the implementation of a request is given: one operation's session, with ``await``."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ..contract.replies import Later
from .binding import RedisBinding
from .statuses import Reply


class Call(NamedTuple):
    """A script, and its arguments."""

    op: str
    args: tuple[Any, ...]


class Waiter(Protocol):
    """How a session waits, and what it holds meanwhile."""

    async def wait(self, later: Later, timeout: float | None) -> bool:
        """See :meth:`pressure_mp.engines.contract.session.Session.wait`."""

    async def end(self) -> None:
        """Give back what is held. Raises nothing."""


class Caller(Protocol):
    """One operation's dealings with the server, in scripts and blocking commands."""

    @property
    def binding(self) -> RedisBinding:
        """The queue."""

    waiter: Waiter | None
    """Set by an implementation that may return a Later."""

    renewed: float
    """When the content that is being read was last kept for another lease."""

    async def script(self, op: str, args: tuple[Any, ...] = (), end: float | None = None) -> Reply:
        """Call a script, once; its status and values. ``end`` is as of ``Session.call``."""

    @property
    def receives(self) -> bool:
        """Whether one who waits for an item is to be given that with the news."""

    async def accept(self, op: str, args: tuple[Any, ...], safe: float) -> Reply | None:
        """Take out the item that :attr:`heard` is, by a script with these arguments and the item
        behind them. Its reply is not waited for when it is sent before the moment ``safe``, on the
        monotonic clock. None when it was not called: then it is to be called without the item."""

    async def sleep(self, seconds: float) -> None:
        """Wait, whatever happens."""

    async def park(
        self, signal: str, timeout: float | None, then: Call | None = None, lasts: float = 0.0
    ) -> bool:
        """Wait for ``signal``, at most ``timeout`` seconds, often less; True when it came. The
        server is asked once to wait for ``lasts`` seconds, in which the caller can come again.

        ``then`` is the script that is called next in that case. It may be sent behind the wait, so
        that the server does it as soon as the signal comes, and the next call of it is that one.
        """

    @property
    def has_sent(self) -> bool:
        """Whether such a script was sent behind a wait that is not over. To call it ends that."""

    @property
    def heard(self) -> Any:
        """The server's reply to the last wait, if it has ended and the signal came."""
