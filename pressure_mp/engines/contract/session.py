"""The interface of an engine: sessions and their verbs, bindings, options."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from .address import Address
from .items import AcknowledgeReply, Hold, TakeBack, Taken
from .replies import Later, NoTask

if TYPE_CHECKING:
    from .requests import Request

#: The ``end`` of a call that is tried once: its outcome is not needed.
ONE_TRY = 0.0


#: Seconds for which each other call tries to connect, if its ``end`` comes sooner: a connection
#: that breaks just when a caller's time is up does not mean that the broker is away.
SHORTEST_TRY = 0.3


#: Seconds after which a wait is over in any case: a client of another implementation that shuts a
#: queue down wakes no client of ours, and a client that is killed wakes none at all.
TICK = 0.9


def longest_wait(later: Later, timeout: float | None) -> float:
    """Return for how many seconds a wait after this reply lasts, if nobody ends it before."""
    limit = TICK if timeout is None else min(timeout, TICK)
    if isinstance(later, NoTask) and later.due is not None:
        limit = min(limit, later.due / 1000)
    return max(limit, 0.0)


class Session(Protocol):
    """The calls of one operation, in a thread."""

    #: The decoded items, once they can no longer go back. The driver sets it, and a handle whose
    #: call was interrupted reads it; an engine begins with None.
    found: list[Any] | None

    def call(self, request: Request, end: float | None = None) -> Any:
        """Do a request, atomically and once, and return one of its replies; never wait for another
        client.

        A session makes one request after the other. In between, its place in line stays as it is;
        only a request with ``waits`` changes it.

        An engine that has lost its broker tries again for some time: a call that was never sent
        until ``end`` at most, on the monotonic clock, or for ``SHORTEST_TRY`` seconds; a call that
        was sent for longer, so that its outcome is known.
        """

    def send_ahead(self, request: Request) -> bool:
        """Send a request, if that needs no waiting. The session's next call, in this or another
        thread, is ``call`` with the same request, and reads the reply. If this is interrupted, the
        request is still done once. Returns whether it may have been sent."""

    def wait(self, later: Later, timeout: float | None) -> bool:
        """Wait, after ``call`` returned ``later`` to a request that waits, until a new call may
        succeed: at most ``timeout`` seconds, and about one. Keeps the caller's place in line.
        Returns whether the wait was woken; a new call may succeed also if it was not."""

    @property
    def taken(self) -> TakeBack | None:
        """Return the request that undoes the session's last take, for a caller that was interrupted
        before it had the items. None when nothing was taken, or an engine cannot undo takes."""

    def interrupted(self) -> None:
        """Note an exception that is not from the engine, such as an exception of a signal handler.
        It may have come in the midst of a call, which may be half done."""

    def end(self) -> None:
        """End the operation: give back what the session holds. Raises nothing."""


class SessionDefaults:
    """Defaults of the verbs that most engines do not need, as a base class of their sessions: no
    take is undone, no request is sent ahead, and no call is half done when an exception comes."""

    found: list[Any] | None = None

    @property
    def taken(self) -> TakeBack | None:
        return None

    def send_ahead(self, request: Request) -> bool:
        return False

    def interrupted(self) -> None:
        """Do nothing."""


class AsyncSession(Protocol):
    """The calls of one operation, in an asyncio task."""

    #: See :attr:`Session.found`.
    found: list[Any] | None

    async def call(self, request: Request, end: float | None = None) -> Any:
        """Do what :meth:`Session.call` does."""

    @property
    def taken(self) -> TakeBack | None:
        """Return the request that undoes the session's last take, for a caller that raises without
        the items. None when nothing was taken, or an engine cannot undo takes."""

    async def wait(self, later: Later, timeout: float | None) -> bool:
        """Do what :meth:`Session.wait` does; behind another task of its loop this may wait for
        longer than about a second."""

    async def end(self) -> None:
        """Do what :meth:`Session.end` does."""


class Durability(NamedTuple):
    """The confirmation of a put before it returns: by so many replicas; with 0, by the server's own
    disk; with :data:`UNCONFIRMED` by nothing, whatever the server's settings."""

    replicas: int

    def __bool__(self) -> bool:
        """Tell whether a put waits for a confirmation."""
        return self.replicas >= 0

    def __str__(self) -> str:
        if not self:
            return "off"
        return f"replica:{self.replicas}" if self.replicas else "fsync"


UNCONFIRMED = Durability(-1)


class Options(NamedTuple):
    """The options of one handle that an engine needs."""

    #: Seconds for which a call tries to reach the broker, if it is away or the connection is lost.
    reconnect: float = 10.0
    durability: Durability | None = None
    #: The latest end of each call, on the monotonic clock, whatever it waits for: also of
    #: connecting, and of waiting for the reply of a silent server.
    until: float | None = None
    #: Milliseconds for which a client that stops answering keeps what it holds.
    lease: int = 5000
    #: Whether only handles of one program use the queue. Then an item may be withheld from other
    #: clients until it has reached a client that waits.
    is_private: bool = False
    #: Whether the items may be in memory that the processes of one host share, as long as the queue
    #: does not need the broker. A handle that may be used on another host moves them first.
    shares_memory: bool = False


DEFAULTS = Options()


class Binding(Protocol):
    """One queue, the notes of a host, or the broker: what the requests of a session are made to."""

    def session(self) -> Session:
        """Begin an operation of a thread. Does no I/O."""

    def asession(self) -> AsyncSession:
        """Begin an operation of an asyncio task. Does no I/O."""


@runtime_checkable
class Local(Protocol):
    """A binding whose items may be in memory that the processes of one host share."""

    @property
    def are_here(self) -> bool:
        """Whether the items are in shared memory."""

    def put_here(self, item: bytes) -> bool:
        """Add an item at once, as :class:`~.items.Put` does. Returns False when that cannot be done
        in shared memory, or there is no space."""

    def hold_here(self, hold: Hold) -> Taken | None:
        """Take one item at once, as :class:`~.items.Take` does with a ``hold``. Returns None when
        there is no item, or that cannot be done in shared memory now."""

    def acknowledge_here(self, owner: str, number: int) -> AcknowledgeReply | None:
        """Acknowledge an item, as :class:`~.items.Acknowledge` does. Returns None when the items
        are not in shared memory."""

    def sign_with(self, sign: Callable[[bytes], bytes]) -> None:
        """Sign with ``sign`` each item that a session of this binding, or a move of the items,
        sends to the broker. ``sign`` leaves a signed item unchanged."""

    def requeue_lost(self) -> None:
        """Requeue the items in shared memory that processes have in flight which have ended, or are
        stopped for longer than a lease."""

    def move_to_broker(self) -> None:
        """Move the items to the broker, for all hosts. Blocks until the broker has them."""


_local: dict[type, bool] = {}


def is_local(binding: object) -> TypeGuard[Local]:
    """Tell whether a binding is :class:`Local`; checked once for each class, as that takes
    microseconds."""
    kind = type(binding)
    found = _local.get(kind)
    if found is None:
        found = _local[kind] = isinstance(binding, Local)
    return found


class Transaction(Protocol):
    """A transaction of a caller's."""

    @property
    def is_over(self) -> bool:
        """Whether the transaction has ended, as far as this process can see; not how it ended."""


class SessionIn(Session, Protocol):
    """The calls of one operation in a transaction of the caller's, in a thread."""

    @property
    def transaction(self) -> Transaction | None:
        """The caller's transaction, once something was staged in it."""


class AsyncSessionIn(AsyncSession, Protocol):
    """The calls of one operation in a transaction of the caller's, in an asyncio task."""

    @property
    def transaction(self) -> Transaction | None:
        """See :attr:`SessionIn.transaction`."""


@runtime_checkable
class Transactional(Protocol):
    """A binding whose requests can be part of a transaction of the caller's, at the same database.

    A request that changes something is staged there, and done when the transaction commits; the
    reply is the one that the request would get now. If it can no longer be done at the commit, the
    commit fails, unless the engine lets nothing change until then. No request ``waits``. Tasks and
    deliveries that are acknowledged stay the caller's until the commit.

    ``connection`` is a connection of a library that the engine knows; raises ArgumentError or
    ArgumentTypeError for a connection that cannot be used as it is.
    """

    def check_may_open(self, connection: object) -> None:
        """Raise ArgumentError if the queue, which is not open, cannot be opened before the
        transaction ends."""

    def session_in(self, connection: object) -> SessionIn:
        """Do what :meth:`Binding.session` does."""

    def asession_in(self, connection: object) -> AsyncSessionIn:
        """Do what :meth:`Binding.asession` does."""


@runtime_checkable
class Neighbour(Protocol):
    """A binding whose queue one request can change together with another queue: see
    :class:`~.forwarding.Forward`."""

    def is_beside(self, other: object) -> bool:
        """Tell whether one request can change this queue and the other one. Does no I/O."""


class Engine(Protocol):
    """One broker. Threads share it; a forked child starts it afresh."""

    @property
    def address(self) -> Address:
        """Where the broker is, and what the engine can do."""

    @property
    def opens_at_once(self) -> bool:
        """Whether the request that opens a queue also checks that no :meth:`rival` has the name,
        and notes an anonymous queue with the host of its ``user``."""

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding:
        """Bind the queue of that name and discipline. Does no I/O; the queue need not exist."""

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding | None:
        """Bind the queue of another kind that may have the same name, if the engine keeps it
        elsewhere."""

    def broker(self, options: Options = DEFAULTS) -> Binding:
        """Bind the broker, to which the requests of ``brokers`` are made. Does no I/O."""

    def host(self, name: str, options: Options = DEFAULTS) -> Binding:
        """Bind the host of that name, to which the requests of ``hosts`` are made. Does no I/O."""

    def after_fork(self) -> None:
        """Drop what belongs to the parent, in a forked child, and send nothing to the broker."""

    def close(self, kept: int = 0) -> None:
        """Close idle connections, except so many to each server. The engine may be used again."""
