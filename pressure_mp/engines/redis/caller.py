"""The session of one operation, as the implementations of requests use it, with ``await``."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ..contract.implementations import Implementations
from ..contract.replies import Later
from .binding import RedisBinding
from .statuses import Reply


class Call(NamedTuple):
    """A script, and its arguments."""

    op: str
    args: tuple[Any, ...]


class Waiter(Protocol):
    """The way in which a session waits, and what it holds meanwhile."""

    async def wait(self, later: Later, timeout: float | None) -> bool:
        """See :meth:`pressure_mp.engines.contract.session.Session.wait`."""

    async def end(self) -> None:
        """Give back all that the operation holds. Raises nothing."""


class Caller(Protocol):
    """The scripts and blocking commands of one operation."""

    @property
    def binding(self) -> RedisBinding:
        """The queue."""

    waiter: Waiter | None
    """Set by an implementation that may return a Later."""

    renewed: float
    """The time at which the content that is being read was last kept for another lease."""

    async def script(self, op: str, args: tuple[Any, ...] = (), end: float | None = None) -> Reply:
        """Call a script, once; return its status and values. ``end`` is as in ``Session.call``."""

    @property
    def receives(self) -> bool:
        """Whether a wake-up can bring the item for which the caller waits."""

    async def accept(self, op: str, args: tuple[Any, ...], safe: float) -> Reply | None:
        """Remove the item in :attr:`wait_reply`, by a script with these arguments and the item
        behind them. Does not wait for its reply when the call is sent before the moment ``safe``,
        on the monotonic clock. Returns None when the script was not called: then the caller calls
        it without the item."""

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""

    async def park(
        self, signal: str, timeout: float | None, then: Call | None = None, lasts: float = 0.0
    ) -> bool:
        """Wait for ``signal``, at most ``timeout`` seconds, often less; return True when it came.
        The server is asked once to wait for ``lasts`` seconds, in which the caller can wait again.

        ``then`` is the script that is called next when the signal came. It may be sent behind the
        wait, so that the server does it as soon as the signal comes; then the next call of it reads
        that reply.
        """

    @property
    def is_parked(self) -> bool:
        """Whether the server still waits for the signal of the last wait."""

    @property
    def has_sent(self) -> bool:
        """Whether such a script was sent behind a wait that is not over. Calling it ends the
        wait."""

    @property
    def wait_reply(self) -> Any:
        """The server's reply to the last wait, if it has ended and the signal came."""


#: The functions in ``requests``, which do requests on a server. Each gets the caller, the request
#: and the end of the call.
implementations: Implementations[Caller, [float | None]] = Implementations()
does = implementations.does
