"""The verbs: what an operation has to do with an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from .address import Address
from .items import TakeBack
from .replies import Later, NoItem

if TYPE_CHECKING:
    from .requests import Request

#: The ``end`` of a call that is tried once: nobody needs to know what becomes of it.
ONE_TRY = 0.0


#: Seconds for which each other call tries to connect, if its ``end`` comes sooner: a connection
#: that breaks in the moment in which a caller's time is up does not tell that the broker is away.
SHORTEST_TRY = 0.3


#: Seconds after which a wait is over in any case: another implementation that shuts a
#: queue down wakes nobody of ours, and one that is killed wakes nobody at all.
TICK = 0.9


class Session(Protocol):
    """One operation's dealings with an engine, in a thread."""

    #: What was made of the items that were taken, once they can no longer go back. The driver sets
    #: it, and a handle whose call was interrupted reads it; an engine begins with None.
    found: list[Any] | None

    def call(self, request: Request, end: float | None = None) -> Any:
        """Do it, atomically and once; never blocks for others. Returns one of its replies.

        A session makes one request after the other. In between, its place in line stays as it is,
        but for what a request with ``waits`` says.

        An engine that has lost its broker tries again for some time. What was never sent it tries
        until ``end`` at most, on the monotonic clock, or for ``SHORTEST_TRY`` seconds; what was
        sent it goes on to ask for, so that its outcome is known.
        """

    def send_ahead(
        self, request: Request, later: NoItem | None = None, timeout: float = 0.0
    ) -> bool:
        """Send it, if that can be done without waiting for anything, and nothing else: this thread
        or another one makes the same request by ``call``, first of all, and has its reply then. If
        this is interrupted, it is done once all the same. Returns whether it may have been sent.

        With ``later`` it is not done before that may be over, or ``timeout`` seconds have passed:
        then ``call`` waits for that. There is no place in line meanwhile. An engine that cannot do
        so sends nothing, and ``call`` does not wait."""

    def wait(self, later: Later, timeout: float | None) -> bool:
        """Wait, after ``call`` returned ``later`` to a request that waits, until to call again may
        help: at most ``timeout`` seconds, and about one. Keeps the caller's place in line. Returns
        whether it was told that it may help; without, it may help too."""

    @property
    def taken(self) -> TakeBack | None:
        """What takes back the items that the session took last, for a caller who was interrupted
        before it had them. None when nothing was taken, or an engine cannot take back."""

    def interrupted(self) -> None:
        """An exception came that is none of the engine's, such as one of a signal handler; perhaps
        in the midst of a call: what the session has may be half done."""

    def end(self) -> None:
        """The operation is over: give back what the session holds. Raises nothing."""


class SessionDefaults:
    """The verbs that most engines have no use for, as a base class of their sessions: nothing is
    taken that could go back, nothing is sent before it is called, and nothing is half done when an
    exception comes."""

    found: list[Any] | None = None

    @property
    def taken(self) -> TakeBack | None:
        """Return None."""
        return None

    def send_ahead(
        self, request: Request, later: NoItem | None = None, timeout: float = 0.0
    ) -> bool:
        """Send nothing."""
        return False

    def interrupted(self) -> None:
        """Do nothing."""


class AsyncSession(Protocol):
    """The same, in an asyncio task."""

    #: As :attr:`Session.found`.
    found: list[Any] | None

    async def call(self, request: Request, end: float | None = None) -> Any:
        """As :meth:`Session.call`."""

    async def wait(self, later: Later, timeout: float | None) -> bool:
        """As :meth:`Session.wait`; but who stands behind another task of its loop may wait for
        longer than about a second."""

    async def end(self) -> None:
        """As :meth:`Session.end`."""


class Durability(NamedTuple):
    """Who confirms a put before it returns: so many replicas; with 0, the server's own disk; with
    :data:`NOBODY`, not even that, whatever the server does else."""

    replicas: int

    def __bool__(self) -> bool:
        """Whether anybody does."""
        return self.replicas >= 0

    def __str__(self) -> str:
        if not self:
            return "off"
        return f"replica:{self.replicas}" if self.replicas else "fsync"


NOBODY = Durability(-1)


class Options(NamedTuple):
    """How one handle wants to be served."""

    #: Seconds for which a call tries to reach the broker, if it is away or the connection is lost.
    reconnect: float = 10.0
    durability: Durability | None = None
    #: When each call ends at the latest, on the monotonic clock, whatever it waits for: also to
    #: connect, and for the reply of a server that is silent.
    until: float | None = None
    #: Milliseconds for which what a client holds stays with it when it stops answering.
    lease: int = 5000
    #: Whether only handles of one program use the queue. Then an item may be kept from others for
    #: as long as it takes to reach one who waits.
    is_private: bool = False
    #: Whether the items may be in memory that the processes of one host share, as long as the queue
    #: needs nothing else. A handle that may be used elsewhere sees to it that they are moved.
    shares_memory: bool = False


DEFAULTS = Options()


class Binding(Protocol):
    """One queue, what a host notes, or the broker, as an engine sees it."""

    def session(self) -> Session:
        """Begin an operation of a thread. Does no I/O."""

    def asession(self) -> AsyncSession:
        """Begin an operation of an asyncio task. Does no I/O."""


@runtime_checkable
class Local(Protocol):
    """A binding whose items may be in memory that the processes of one host share."""

    @property
    def are_here(self) -> bool:
        """Whether they are."""

    def put_here(self, item: bytes) -> bool:
        """Add an item at once, as :class:`~.items.Put` does; False when that cannot be done here,
        or there is no space."""

    def sign_with(self, sign: Callable[[bytes], bytes]) -> None:
        """Sign with ``sign`` each item that a session of this binding, or a move of the items,
        sends to the broker. ``sign`` leaves a signed item unchanged."""

    def move_to_broker(self) -> None:
        """Have them where all hosts see them, from now on. Blocks until the broker has them."""


_local: dict[type, bool] = {}


def is_local(binding: object) -> TypeGuard[Local]:
    """Whether it is a :class:`Local`; asked once of each class, as that takes microseconds."""
    kind = type(binding)
    found = _local.get(kind)
    if found is None:
        found = _local[kind] = isinstance(binding, Local)
    return found


class Transaction(Protocol):
    """One of a caller's."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, as far as that can be seen here: how, is not known."""


class SessionIn(Session, Protocol):
    """An operation's dealings with an engine in a transaction of the caller's."""

    @property
    def transaction(self) -> Transaction | None:
        """The caller's, once something was staged in it."""


class AsyncSessionIn(AsyncSession, Protocol):
    """The same, in an asyncio task."""

    @property
    def transaction(self) -> Transaction | None:
        """As :attr:`SessionIn.transaction`."""


@runtime_checkable
class Transactional(Protocol):
    """A binding whose requests can be part of a transaction of the caller's, at the same database.

    What changes something is staged there, and done when the transaction commits; the reply is what
    it would be now. If it can no longer be done then, the commit fails. Nothing ``waits``. Items
    that are put take their places at the commit, over the bound if others came in between; tasks
    and deliveries that are acknowledged stay the caller's until then. What only looks is no part of
    the transaction.

    ``connection`` is one of a library that the engine knows; raises ArgumentError or
    ArgumentTypeError for one that cannot be used as it is.
    """

    def session_in(self, connection: object) -> SessionIn:
        """As :meth:`Binding.session`."""

    def asession_in(self, connection: object) -> AsyncSessionIn:
        """As :meth:`Binding.asession`."""


class Engine(Protocol):
    """One broker. Threads share it; a forked child starts it afresh."""

    @property
    def address(self) -> Address:
        """Where it is, and what it can do."""

    @property
    def opens_at_once(self) -> bool:
        """Whether what opens a queue sees to all else: that no :meth:`rival` has the name, and that
        an anonymous queue is noted with the host of its ``user``."""

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding:
        """The queue of that name and discipline; does no I/O, and the queue need not exist."""

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding | None:
        """What else may have this name, beside the queue that ``bind`` gives: a queue of another
        kind, which is kept elsewhere."""

    def broker(self, options: Options = DEFAULTS) -> Binding:
        """Where the requests of ``brokers`` are made; does no I/O."""

    def host(self, name: str, options: Options = DEFAULTS) -> Binding:
        """Where the requests of ``hosts`` are made for the host of that name; does no I/O."""

    def after_fork(self) -> None:
        """In a forked child: let go of what belongs to the parent, without a word to the broker."""

    def close(self, kept: int = 0) -> None:
        """Close idle connections, except so many to each server. The engine may be used again."""
