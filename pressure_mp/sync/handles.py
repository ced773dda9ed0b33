"""What all handles share: where their queue is, and how an operation is run on it."""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from .. import lifecycle
from ..background import at_exit, lifetimes
from ..buffering import unsent
from ..drivers import Watch, drive, drive_on
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
from ..hidden import hide_in
from ..identity.client import client_id
from ..identity.processes import host, user
from ..operations.queues import QueueOperations
from .arguments import (
    check_durability,
    check_durable,
    check_lease,
    check_level,
    check_name,
    check_reconnect,
)
from .options import ConnectionOptions
from .transactions import transactional

if TYPE_CHECKING:
    from typing_extensions import Self


class Handle:
    """One object that refers to a queue. Threads may share it; it may be pickled."""

    #: Whether a negative timeout is an error, as in the class of ``queue`` that this one mirrors.
    #: Elsewhere the time is over then, as it is in ``multiprocessing``.
    _refuses_negative_timeouts = False

    #: What the engine needs to have.
    _levels: tuple[Level, ...] = (Level.ITEMS,)

    #: How to open the queue: create it, attach to it, or whichever it needs.
    _how = How.OPEN

    #: Whether the queue is opened by whoever made the handle, and not where it is made.
    _opens_later = False
    #: Then: what opens it, until that was done.
    _opening: Callable[[], Operation[None]] | None = None

    def __init__(self, name: str | None, options: ConnectionOptions) -> None:
        check_name(name)
        self._anonymous = name is None
        self._name = f"{ANONYMOUS}{os.urandom(8).hex()}}}" if name is None else name
        self._options = Options(
            check_reconnect(options["reconnect"]),
            check_durability(options["durability"]),
            lease=int(check_lease(options["lease"]) * 1000),
            is_private=self._anonymous,
        )
        host, port, db = options["host"], options["port"], options["db"]
        address = registry.resolve(options["url"], host, port, db, options["prefix"])
        check_durable(self._options, address)
        for level in self._levels:
            check_level(type(self).__name__, level, address)
        self._address = address if self._opens_later else address.started()
        self._reset()

    @classmethod
    def _unopened(cls, how: How, *args: Any, **options: Any) -> Self:
        """A handle that is made as by the class itself, and does no I/O before it is first used."""
        handle = cls.__new__(cls)
        handle._opens_later = True
        handle._how = how
        cls.__init__(handle, *args, **hide_in(options))
        return handle

    @classmethod
    def _insist(cls, how: How, *args: Any, **options: Any) -> Self:
        """A handle that is made as by the class itself, but opens the queue in this way."""
        handle = cls.__new__(cls)
        handle._how = how
        cls.__init__(handle, *args, **hide_in(options))
        del handle._how
        return handle

    def _reset(self) -> None:
        """The state of a handle that has not been used in this process."""
        self._operations = self._make_operations()
        self._operations.endpoint = self._address.endpoint
        self._binding: Binding | None = None
        self._hold: lifetimes.Hold | None = None
        self._handle_closed = False
        self._presence: Any = None  # this process in the queue
        self._token = object()  # tells this handle from every other one of the process
        if self._anonymous:
            inheritable.add(self)
            if "multiprocessing" in sys.modules:
                # A child that it forks is a user from its start, however late it first does.
                from multiprocessing.util import register_after_fork

                register_after_fork(self, _join_in_child)

    def _make_operations(self) -> QueueOperations:
        """What this handle's discipline can do."""
        raise NotImplementedError

    def _open(self, opening: Callable[[], Operation[None]]) -> None:
        """Create or attach: the first words with the broker."""
        if self._opens_later:
            self._opening = opening
        else:
            self._connect(opening())

    def _open_by(
        self, make: Callable[[str], Operation[T]], opened: Callable[[T], None]
    ) -> Operation[None]:
        """``make`` is given the process to note as a user, or "", and returns the operation;
        ``opened`` what that returns."""
        engine, me = registry.engine(self._address), ""
        name, discipline, options = self._name, self._operations.discipline, self._options
        at_exit.meet(engine)
        at_once = engine.opens_at_once
        if not at_once:
            yield from lifetimes.sweep(engine, QueueOperations, options)
        binding = self._bind(engine)
        try:
            if self._anonymous:
                self._hold, me = lifetimes.adopt(engine, self._operations), user()
                if not at_once:
                    yield from lifetimes.note(engine, self._operations, options)
            elif not at_once and (rival := engine.rival(name, discipline, options)):
                yield On(rival, self._operations.look_for_rival())
            opened((yield On(binding, make(me))))
        except PressureError:
            if self._hold:
                self._hold.cancel()
            raise
        self._binding, self._opening = binding, None
        if at_once:
            yield from lifetimes.sweep(engine, QueueOperations, options)

    def _bind(self, engine: Engine, options: Options | None = None) -> Binding:
        return engine.bind(self._name, self._operations.discipline, options or self._options)

    def _attach(self, options: Options | None = None) -> Binding:
        """The first use of a handle that came from elsewhere; with ``options`` for that alone."""
        return self._connect(self._first_use(options or self._options))

    def _first_use(self, options: Options) -> Operation[None]:
        return self._opening() if self._opening is not None else self._attaching(options)

    def _connect(self, operation: Operation[None]) -> Binding:
        """Run what makes the connection."""
        self._meet_with(operation)
        assert self._binding is not None
        return self._binding

    def _meet_with(self, operation: Operation[None]) -> None:
        """Run an operation that names the binding of all that it does. What the broker's own error
        says, a user can put right; the thirty calls between here and there would only hide it."""
        try:
            drive(operation, registry.engine(self._address).host(host()).session())
        except (BrokerError, BrokerUnavailable) as error:
            raise error.with_traceback(None) from error.__cause__

    def _attaching(self, options: Options) -> Operation[None]:
        engine = registry.engine(self._address)
        at_exit.meet(engine)
        yield from lifetimes.sweep(engine, QueueOperations, options)
        if self._anonymous:
            self._hold = lifetimes.adopt(engine, self._operations)
            try:
                yield from lifetimes.note(engine, self._operations, options)
                yield On(self._bind(engine, options), self._operations.enlist(user()))
            except QueueDoesNotExistError:
                self._hold.cancel()
                yield from lifetimes.forget(engine, [self._queue_key], DEFAULTS)
                raise QueueDoesNotExistError(
                    f"anonymous queue {self._name!r} is gone: the processes that used it ended "
                    f"before this one first did, or it is not at {self.url}"
                ) from None
            except PressureError:
                self._hold.cancel()
                raise
        self._binding = self._bind(engine)

    @property
    def _queue_key(self) -> QueueKey:
        return self._name, self._operations.discipline

    def _leave(self, deleting: Operation[None]) -> Operation[None]:
        """Delete the queue, and nothing is kept for this process."""
        yield from deleting
        yield from lifetimes.leave(registry.engine(self._address), [self._queue_key], DEFAULTS)

    def _run(self, operation: AnyOperation[T], watch: Watch | None = None) -> T:
        """Run it when the broker has what this process put before."""
        if unsent.senders:
            unsent.settle(registry.engine(self._address))
        return self._run_on(self._session(), operation, watch)

    def _acknowledging(self, operation: AnyOperation[T], watch: Watch | None = None) -> T:
        """Run one that says that something is dealt with: when the broker has what this process put
        before, and only then. Raises what went wrong with that."""
        if unsent.senders or unsent.failed:
            self._flush_puts()
        return self._run_at_once(operation, watch)

    def _flush_puts(self) -> None:
        """Wait until the broker has what this process put before. Raises what went wrong with
        that."""
        unsent.raise_failures(registry.engine(self._address))

    def _run_at_once(self, operation: AnyOperation[T], watch: Watch | None = None) -> T:
        """Run it, whatever was put and is not yet sent."""
        return self._run_on(self._session(), operation, watch)

    def _run_in(self, connection: object, operation: AnyOperation[T]) -> T:
        """Run it in a transaction of the caller's, when the broker has what this process put
        before. Raises what went wrong with that."""
        return self._run_on(self._session_in(connection), operation)

    def _session_in(self, connection: object) -> SessionIn:
        """The same, for one who runs it."""
        if unsent.senders or unsent.failed:
            self._flush_puts()
        return transactional(self._attached(), self._address).session_in(connection)

    def _session(self) -> Session:
        return (self._binding or self._attach()).session()

    def _attached(self) -> Binding:
        return self._binding or self._attach()

    def _run_on(
        self, session: Session, operation: AnyOperation[T], watch: Watch | None = None
    ) -> T:
        """Run it on a session, which ends with it."""
        try:
            return drive_on(operation, session, watch)
        except QueueDoesNotExistError:
            if self._anonymous:
                self._check_open()  # closed, and nobody else had it
            raise
        finally:
            session.end()

    def _seconds(self, timeout: float | None) -> float | None:
        """The time to wait for a ``timeout``, None for no limit. Raises ArgumentError,
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
        if seconds < 0 and self._refuses_negative_timeouts:
            raise ArgumentError("'timeout' must be a non-negative number")
        return max(seconds, 0.0)

    def _check_open(self) -> None:
        if self._handle_closed:
            raise HandleClosedError(f"{type(self).__name__} {self._name!r} is closed")

    def _while_open(self) -> AbstractContextManager[None]:
        """Check the handle during a wait: raises HandleClosedError once the handle is closed."""
        self._check_open()
        return nullcontext()

    def _close_handle(self) -> None:
        self._handle_closed = True
        if self._hold:
            self._meet_with(self._hold.release())

    @property
    def name(self) -> str:
        """The queue's name at its broker."""
        return self._name

    @property
    def url(self) -> str:
        """The broker's address, without a password."""
        return self._address.url

    @property
    def prefix(self) -> str:
        """The beginning of all key names of the queue at the broker."""
        return self._address.prefix

    @property
    def client_id(self) -> str:
        """The id of the calling thread at the broker: host, pid, thread, and a unique part."""
        return client_id()

    def exists(self) -> bool:
        """Whether the queue exists. Never waits (specification: Exists)."""
        return self._run(self._operations.exists())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r} at {self.url}>"

    def _forget_parent(self) -> None:
        """In a forked child, which uses an anonymous queue from when it says so at the broker."""
        if self._anonymous:
            self._binding = self._hold = None

    def __getstate__(self) -> dict[str, Any]:
        if self._opening is not None:
            raise ArgumentError(
                f"queue {self._name!r} is not open yet: open() it before its handle is pickled"
            )
        if unsent.senders:
            unsent.settle_for_others(registry.engine(self._address))
        options = self._options
        if options.shares_memory and not is_spawning():
            binding = self._attached()
            if is_local(binding):
                binding.move_to_broker()  # who knows where it is used
            options = options._replace(shares_memory=False)
        if self._anonymous and self._binding:
            lifetimes.escape(self._name, registry.engine(self._address))
        state = {**self.__dict__, "_options": options}
        state.pop("__orig_class__", None)  # of Queue[int](): what it names may not be picklable
        for local in (
            "_operations",
            "_opening",
            "_opens_later",
            "_how",
            "_binding",
            "_hold",
            "_handle_closed",
            "_presence",
            "_token",
        ):
            state.pop(local, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()


#: Handles that have something here that a forked child must not have too.
inheritable: weakref.WeakSet[Handle] = weakref.WeakSet()


#: Seconds that a forked child waits for a broker that does not answer, before it begins; and the
#: brokers that did not answer it.
_PATIENCE = 1.0
_away: set[Address] = set()


def _join_in_child(handle: Handle) -> None:
    address = handle._address
    if handle._binding is None and address not in _away:
        patience = min(_PATIENCE, handle._options.reconnect)
        until = time.monotonic() + _PATIENCE
        try:
            handle._attach(handle._options._replace(reconnect=patience, until=until))
        except QueueDoesNotExistError:
            pass  # the first use says so
        except ConnectionError:
            _away.add(address)


def _after_fork_in_child() -> None:
    _away.clear()
    for handle in list(inheritable):
        handle._forget_parent()


lifecycle.register("forget handles", _after_fork_in_child)
