"""One handle's attachment to its queue: where the queue is, and how this process reaches it."""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, NamedTuple

from .. import lifecycle
from ..background import at_exit, lifetimes
from ..deadlines import deadline
from ..drivers import Guard, drive, drive_on
from ..effects import AnyOperation, On, Operation, T
from ..encoding.signing import is_spawning
from ..engines import registry
from ..engines.contract.address import Address
from ..engines.contract.hosts import QueueKey
from ..engines.contract.levels import Level
from ..engines.contract.queues import ANONYMOUS, How
from ..engines.contract.session import (
    DEFAULTS,
    Binding,
    Engine,
    Options,
    Session,
    SessionIn,
    is_local,
)
from ..exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    BrokerUnavailable,
    HandleClosedError,
    PressureError,
    QueueDoesNotExistError,
)
from ..identity.processes import host, user
from ..operations.queues import QueueOperations
from . import unsent
from .arguments import (
    check_durability,
    check_durable,
    check_lease,
    check_level,
    check_name,
    check_reconnect,
)
from .forwarding import Forwarding
from .options import ConnectionOptions
from .transactions import check_waits_for_nothing, transactional


class Traits(NamedTuple):
    """The properties of a class of handles."""

    #: The name of the class, for the texts of errors.
    handle: str
    make_operations: Callable[[str], Any]
    #: What the engine needs to have.
    levels: tuple[Level, ...] = (Level.ITEMS,)
    #: Whether a negative timeout is an error, as in the class of ``queue`` that has this interface.
    #: Elsewhere it means 0, as in ``multiprocessing``.
    refuses_negative_timeouts: bool = False
    #: Whether puts may be buffered, and gets read ahead, where the program does not say.
    buffers_unasked: bool = False


#: Makes the operation that opens the queue of an attachment. It does not refer to that one: a cycle
#: of both would keep a handle that no program has.
Opening = Callable[[Any], Operation[None]]


class Attachment:
    """Where a handle's queue is, and the binding through which this process reaches it.

    A forked child keeps the binding of a named queue. For an anonymous queue it attaches anew, and
    so becomes one of the queue's users.
    """

    #: How to open the queue: create it, attach to it, or whichever it needs.
    how = How.OPEN
    #: Whether a handle of asyncio uses this one, and has buffers of its own.
    is_of_asyncio = False
    #: Opens the queue at the first use; None when it is open.
    opening: Opening | None = None
    #: Did this, of a handle that the program made here.
    _first_opening: Opening | None = None
    #: Whether the environment said where the broker is.
    is_at_default = False

    operations: Any  # the operations of the queue's discipline
    traits: Traits

    #: The attributes that are no part of a pickle: :meth:`begin` makes them.
    of_one_process: ClassVar[tuple[str, ...]] = (
        *("traits", "operations", "opening", "is_of_asyncio", "how", "binding", "hold"),
        *("is_closed", "_presence", "token", "is_at_default", "_first_opening"),
    )

    def __init__(
        self,
        traits: Traits,
        name: str | None,
        options: ConnectionOptions,
        how: How = How.OPEN,
        is_of_asyncio: bool = False,
    ) -> None:
        check_name(name)
        self.how, self.is_of_asyncio = how, is_of_asyncio
        self.is_anonymous = name is None
        self.name = f"{ANONYMOUS}{os.urandom(8).hex()}}}" if name is None else name
        self.options = Options(
            check_reconnect(options["reconnect"]),
            check_durability(options["durability"]),
            lease=int(check_lease(options["lease"]) * 1000),
            is_private=self.is_anonymous,
        )
        where = options["url"], options["host"], options["port"], options["db"]
        self.is_at_default = where == (None, None, None, None)
        address = registry.resolve(*where, options["prefix"])
        check_durable(self.options, address)
        for level in traits.levels:
            check_level(traits.handle, level, address)
        self._begin_at(address, traits)

    def _begin_at(self, address: Address, traits: Traits) -> None:
        # A server of this program's own is started before it forks.
        self.address = address if self.is_of_asyncio else address.started()
        self.begin(traits)

    def begin(self, traits: Traits) -> None:
        """Begin as a handle that this process has not used."""
        self.traits = traits
        self.operations: QueueOperations = traits.make_operations(self.name)
        self.operations.endpoint = self.address.endpoint
        self.binding: Binding | None = None
        self.hold: lifetimes.Hold | None = None
        self.is_closed = False
        self._presence: Any = None  # this process in the queue
        self.token = object()  # tells this handle from every other handle of the process
        if self.is_anonymous:
            inheritable.add(self)
            if "multiprocessing" in sys.modules:
                # A child that it forks is a user from its start, however late it first does.
                from multiprocessing.util import register_after_fork

                register_after_fork(self, _join_in_child)

    # Opening

    def open(self, opening: Opening) -> None:
        """Create the queue or attach to it: at the first use, if the handle is one of asyncio or
        names the queue and does not insist on either."""
        self.opening = self._first_opening = opening
        if self.how is How.OPEN and not self.is_anonymous:
            named.add(self)
        if not self.is_of_asyncio and (self.is_anonymous or self.how is not How.OPEN):
            self.attach()

    def begin_at(self, address: Address) -> None:
        """Begin anew as a handle of this program that was not used, at that broker."""
        self._begin_at(address, self.traits)
        self.opening = self._first_opening

    def open_by(
        self, make: Callable[[str], Operation[T]], opened: Callable[[T], None]
    ) -> Operation[None]:
        """Open the queue. ``make`` is given the process to note as a user, or "", and returns the
        operation that opens; ``opened`` is given what that returns."""
        engine, me = registry.engine(self.address), ""
        name, discipline, options = self.name, self.operations.discipline, self.options
        at_exit.meet(engine)
        at_once = engine.opens_at_once
        if not at_once:
            yield from lifetimes.sweep(engine, QueueOperations, options)
        binding = self.bind(engine)
        try:
            if self.is_anonymous:
                self.hold, me = lifetimes.adopt(engine, self.operations), user()
                if not at_once:
                    yield from lifetimes.note(engine, self.operations, options)
            elif not at_once and (rival := engine.rival(name, discipline, options)):
                yield On(rival, self.operations.look_for_rival())
            opened((yield On(binding, make(me))))
        except PressureError:
            if self.hold:
                self.hold.cancel()
            raise
        self.binding, self.opening = binding, None
        self.decide_where_items_are()
        if at_once:
            yield from lifetimes.sweep(engine, QueueOperations, options)

    def decide_where_items_are(self) -> None:
        """Note for a queue that was opened where its items are: always at the broker."""

    def bind(self, engine: Engine, options: Options | None = None) -> Binding:
        """Return the engine's binding of the queue."""
        return engine.bind(self.name, self.operations.discipline, options or self.options)

    def bind_unopened(self) -> Binding:
        """Return a binding of the queue, which need not exist."""
        return self.bind(registry.engine(self.address))

    def attach(self, options: Options | None = None) -> Binding:
        """Open the queue, or attach a handle that came from elsewhere; with ``options`` for that
        alone."""
        return self.connect(self.first_use(options or self.options))

    def first_use(self, options: Options) -> Operation[None]:
        """Return the operation that opens the queue, or attaches to it."""
        opening = self.opening  # which another thread may do just now
        return self._attaching(options) if opening is None else opening(self)

    def connect(self, operation: Operation[None]) -> Binding:
        """Run the operation that makes the connection."""
        self.run_unbound(operation)
        assert self.binding is not None
        return self.binding

    def run_unbound(self, operation: Operation[None]) -> None:
        """Run an operation that names the binding of each of its steps. A user can mend what the
        broker's own error says; the thirty calls between here and there would only hide it."""
        try:
            drive(operation, registry.engine(self.address).host(host()).session())
        except (BrokerError, BrokerUnavailable) as error:
            raise error.with_traceback(None) from error.__cause__

    def _attaching(self, options: Options) -> Operation[None]:
        engine = registry.engine(self.address)
        at_exit.meet(engine)
        yield from lifetimes.sweep(engine, QueueOperations, options)
        if self.is_anonymous:
            self.hold = lifetimes.adopt(engine, self.operations)
            try:
                yield from lifetimes.note(engine, self.operations, options)
                yield On(self.bind(engine, options), self.operations.enlist(user()))
            except QueueDoesNotExistError:
                self.hold.cancel()
                yield from lifetimes.forget(engine, [self.queue_key], DEFAULTS)
                raise QueueDoesNotExistError(
                    f"anonymous queue {self.name!r} is gone: the processes that used it ended "
                    f"before this one first did, or it is not at {self.address.url}"
                ) from None
            except PressureError:
                self.hold.cancel()
                raise
        self.binding = self.bind(engine)

    @property
    def queue_key(self) -> QueueKey:
        """The queue's name and discipline."""
        return self.name, self.operations.discipline

    def leave(self, deleting: Operation[None]) -> Operation[None]:
        """Delete the queue; nothing is kept for this process then."""
        yield from deleting
        yield from lifetimes.leave(registry.engine(self.address), [self.queue_key], DEFAULTS)

    # Running operations in a thread

    def settled_session(self) -> Session:
        """Begin an operation when the broker has all items that this process put before."""
        if unsent.senders:
            unsent.settle(registry.engine(self.address))
        return (self.binding or self.attach()).session()

    def flushed_session(self) -> Session:
        """Do the same, and raise the error of a put that failed."""
        self.flush_all()
        return (self.binding or self.attach()).session()

    def flush_all(self, acknowledged: str | None = None) -> None:
        """Wait until the broker has all items that this process put. Raise the error of a failed
        put; with the queue ``acknowledged``, only an error that keeps back its acknowledgements."""
        if unsent.senders or unsent.failed:
            unsent.raise_failures(registry.engine(self.address), acknowledged)

    def run_at_once(self, operation: AnyOperation[T], guard: Guard | None = None) -> T:
        """Run an operation, also while items that were put before wait to be sent."""
        return self.run_on(self.session(), operation, guard)

    def session_in(self, connection: object) -> SessionIn:
        """Begin an operation in a transaction of the caller, as :meth:`flushed_session`."""
        self.flush_all()
        self.check_may_open(connection)
        return transactional(self.attached(), self.address).session_in(connection)

    def run_in(self, connection: object, operation: AnyOperation[T]) -> T:
        """Run an operation on such a session; or a put that settles a delivery."""
        if isinstance(connection, Forwarding):
            operation = connection.settled_by(operation, self, self.attached())
            return self.run_on(self.flushed_session(), operation)
        return self.run_on(self.session_in(connection), operation)

    def check_may_open(self, connection: object) -> None:
        """Raise ArgumentError if the queue is not open, and a transaction of the caller keeps it
        from being opened."""
        if self.binding is None:
            transactional(self.bind_unopened(), self.address).check_may_open(connection)

    def session(self) -> Session:
        """Begin an operation. Does no I/O once this process uses the queue."""
        return (self.binding or self.attach()).session()

    def attached(self) -> Binding:
        """Return the binding; the first use makes it."""
        return self.binding or self.attach()

    def run_on(self, session: Session, operation: AnyOperation[T], guard: Guard | None = None) -> T:
        """Run an operation on a session, which ends with it."""
        try:
            return drive_on(operation, session, guard)
        except QueueDoesNotExistError:
            if self.is_anonymous:
                self.check_open()  # closed, and no other process had it
            raise
        finally:
            session.end()

    def limit_put(
        self, block: bool, timeout: float | None, connection: object | None
    ) -> tuple[bool, float | None]:
        """Return whether a put may wait, and until when on the monotonic clock. Raises
        HandleClosedError, ArgumentError, ArgumentTypeError."""
        self.check_open()
        if connection is not None and not isinstance(connection, Forwarding):
            check_waits_for_nothing("a timeout", timeout)
            return False, None
        if timeout is None or not block:
            return bool(block), None
        return True, deadline(True, self.seconds(timeout))

    def seconds(self, timeout: float | None) -> float | None:
        """Return the seconds to wait for a ``timeout``, None for no limit. Raises ArgumentError,
        ArgumentTypeError."""
        if timeout is None:
            return None
        try:
            seconds = float(timeout + 0.0)  # a float32 of numpy cannot be added to a clock
        except TypeError:
            raise ArgumentTypeError(
                f"'timeout' is a number of seconds or None, not {type(timeout).__name__}"
            ) from None
        if seconds != seconds:
            raise ArgumentError("'timeout' is a number of seconds or None, not nan")
        if seconds < 0 and self.traits.refuses_negative_timeouts:
            raise ArgumentError("'timeout' must be a non-negative number")
        return max(seconds, 0.0)

    # The end of a handle

    def check_open(self) -> None:
        """Raise HandleClosedError on a closed handle."""
        if self.is_closed:
            raise HandleClosedError(f"{self.traits.handle} {self.name!r} is closed")

    def while_open(self) -> AbstractContextManager[None]:
        """Check the handle during a wait: raises HandleClosedError once it is closed."""
        self.check_open()
        return nullcontext()

    def close(self) -> None:
        """Close the handle; with the last one, the process is no user of an anonymous queue."""
        self.is_closed = True
        if self.hold:
            self.run_unbound(self.hold.release())

    # Forks and pickles

    def forget_parent(self) -> None:
        """Begin in a forked child, which attaches to an anonymous queue before it uses it."""
        if self.is_anonymous:
            self.binding = self.hold = None

    def __getstate__(self) -> dict[str, Any]:
        if self.opening is not None:
            if self.is_of_asyncio:
                raise ArgumentError(
                    f"queue {self.name!r} is not open yet: open() it before its handle is pickled"
                )
            self.attach()
        if unsent.senders:
            unsent.settle_for_others(registry.engine(self.address))
        options = self.options
        if options.shares_memory and not is_spawning():
            binding = self.attached()
            if is_local(binding):
                binding.move_to_broker()  # the handle may be used on any host
            options = options._replace(shares_memory=False)
        if self.is_anonymous and self.binding:
            lifetimes.escape(self.name, registry.engine(self.address))
        state = {**self.__dict__, "options": options}
        for local in self.of_one_process:
            state.pop(local, None)
        return state


#: The attachments that this process has made, whose first use creates the queue if it is not there.
named: weakref.WeakSet[Attachment] = weakref.WeakSet()

#: The attachments that have something here that a forked child must not have too.
inheritable: weakref.WeakSet[Attachment] = weakref.WeakSet()


#: Seconds that a forked child waits for a broker that does not answer, before it begins; and the
#: brokers that did not answer it.
_PATIENCE = 1.0
_away: set[Address] = set()


def _join_in_child(attachment: Attachment) -> None:
    address = attachment.address
    if attachment.binding is None and address not in _away:
        patience = min(_PATIENCE, attachment.options.reconnect)
        until = time.monotonic() + _PATIENCE
        try:
            attachment.attach(attachment.options._replace(reconnect=patience, until=until))
        except QueueDoesNotExistError:
            pass  # the first use says so
        except ConnectionError:
            _away.add(address)


def _after_fork_in_child() -> None:
    _away.clear()
    for attachment in list(inheritable):
        attachment.forget_parent()


lifecycle.register("forget handles", _after_fork_in_child)
