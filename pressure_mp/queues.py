"""What users hold: the interfaces of ``queue`` and of ``multiprocessing``."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from types import GenericAlias, TracebackType
from typing import Any, TypeVar

from . import serializers, signing
from .codec import Codec
from .exceptions import (
    ArgumentError,
    ArgumentTypeError,
    Full,
    LateTaskDoneWarning,
    PressureError,
    RejectedItemWarning,
    ShutDown,
)
from .handles import DEFAULT_LEASE, DEFAULT_RECONNECT, ItemHandle, check_max_items, check_maxsize
from .large import is_manifest, weight
from .operations.batches import MOST_BYTES, MOST_ITEMS
from .operations.flights import Flight
from .serializers import Serializer
from .signing import AuthKey

Self = TypeVar("Self", bound="ObjectQueue")
FifoQueue = TypeVar("FifoQueue", bound="Queue")


class ObjectQueue(ItemHandle):
    """What every queue of Python objects has; use one of its subclasses."""

    def __init__(
        self,
        maxsize: int = 0,
        name: str | None = None,
        *,
        url: str | None = None,
        host: str | None = None,
        port: int | None = None,
        db: int | None = None,
        prefix: str | None = None,
        serializer: str | Serializer = "pickle",
        authkey: AuthKey | None = None,
        lease: float = DEFAULT_LEASE,
        reconnect: float = DEFAULT_RECONNECT,
        durability: str | None = None,
        eof: str | None = None,
        _how: str = "open",
    ) -> None:
        """Attach to the queue called ``name``, or create it when it is not there.

        Without a name: create an anonymous queue, which lives until the last process that uses
        it has ended, and then leaves nothing behind.

        :param maxsize: items the queue holds before a put waits; less than 1 means no bound.
            To attach with another bound than the queue's own is an error; 0 takes any.
        :param url: where the broker is: ``redis://``, ``rediss://``, ``unix://``,
            ``redis+sentinel://``, ``redis+cluster://``, ``embedded://``, ``memory://``. Else
            ``host``, ``port`` and ``db``; else the environment: ``PRESSURE_URL``, or
            ``REDIS_SERVER``, ``REDIS_PORT``, ``REDIS_DB``; else ``127.0.0.1:6379``, database 0.
        :param prefix: what key names begin with; else ``PRESSURE_PREFIX``, else ``__pressure__``.
        :param serializer: ``"pickle"``, ``"json"``, ``"text"``, ``"raw"``, or an object with
            ``dumps`` and ``loads``.
        :param authkey: the secret that items are signed with: ``bytes``, ``str``, or several of
            these, of which the first signs and any is accepted. Else ``PRESSURE_AUTHKEY``, where
            commas separate several; else, without a name, the key that
            ``multiprocessing.current_process()`` shares with its children; else nothing is signed.
        :param lease: seconds after which the role of a client that stopped answering while it
            waited is given to another; and what it has in flight, see :class:`JoinableQueue`.
        :param reconnect: seconds for which an operation that lost its connection tries to reach
            the broker again; 0 fails at once. What it does is done once, however often the
            connection breaks.
        :param durability: who confirms a put or a shutdown before it returns, at most 5 seconds
            after it was done: ``"replica:N"``, N replicas of the server; ``"fsync"``, the
            server's append-only file; None, the server only. ``memory://`` has neither.
        :param eof: ``"producers"``: get raises ShutDown too when the queue is empty and every
            producer has ended. A producer is a process that put through a handle with this
            option, from its first put until it closes the last such handle, ends, or dies.

        Blocks for the connection, at most 5 seconds. Raises BrokerUnavailable,
        QueueMismatchError (the queue has another maxsize or discipline), AddressError,
        ArgumentError, ArgumentTypeError.
        """
        chosen = serializers.find(serializer)
        keys = signing.gather(authkey, name is None, os.environ)
        bound = check_maxsize(maxsize)
        if eof not in (None, "producers"):
            raise ArgumentError(f"eof is 'producers' or None, not {eof!r}")
        self._eof = eof is not None
        super().__init__(
            name,
            url=url,
            host=host,
            port=port,
            db=db,
            prefix=prefix,
            lease=lease,
            reconnect=reconnect,
            durability=durability,
        )
        self._codec = Codec(chosen, keys, self.prefix, self._name, self._anonymous)
        self._open_bounded(_how, bound)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put ``item`` into the queue; when this returns, the broker has it.

        Blocks while the queue is full: without limit, or at most ``timeout`` seconds; not at all
        when ``block`` is false. Those who wait are served in the order in which they came.

        Raises Full when the time is up (ProducerInUseError, which is a Full, when not the bound
        but another producer was in the way), ShutDown when the queue is shut down, EncodingError
        when the item cannot be serialized, AuthenticationError when this handle came to the
        process without its key, ItemTooLargeError, QueueDoesNotExistError,
        HandleClosedError after :meth:`close`, ArgumentError for a negative timeout. Then nothing
        was queued. BrokerUnavailable says that the broker did not answer for ``reconnect`` seconds,
        or by the end of ``timeout``; whether it has the item is not known. With ``durability``,
        NotDurable says that the item is in the queue, but was not confirmed within 5 seconds.

        A pickle of 256 KB or more is sent in parts, before this waits for space; the time for that
        is not part of ``timeout``. Arrays are sent from their own memory: what another thread
        writes into one meanwhile may or may not be in the item (on a signed queue, such an item is
        refused).
        (``queue.Queue.put``; specification: Put)
        """
        self._check_open()
        order = self._order(item)
        payload = self._codec.encode(item)
        if self._eof:
            self._here.produce(self._run, self._token)
        operation = self._operations.put(payload, bool(block), timeout, order=order)
        try:
            self._run(operation)
        except Full as error:
            error.item = item
            raise

    def _order(self, item: Any) -> bytes:
        """Where the item belongs, as the discipline wants to know it."""
        return b""

    def _orders(self, items: Sequence[Any]) -> Sequence[bytes]:
        """The same of each, in a discipline that wants to know anything."""
        return ()

    def put_many(
        self, items: Iterable[Any], block: bool = True, timeout: float | None = None
    ) -> None:
        """Put all ``items`` into the queue, in order, up to 1,000 or 1 MB in each round trip.

        The iterable is read to its end, and every item serialized, before the first is queued. A
        bounded queue takes what it has space for; then this blocks as :meth:`put` does, at most
        ``timeout`` seconds in all. Others may put items in between.

        Raises what :meth:`put` does. Then the error's ``accepted`` says how many of the items are
        in the queue, and ``rest`` has the others, in order: all of them after an EncodingError.
        After BrokerUnavailable or NotDurable up to 1,000 items of ``rest`` may be queued too.
        """
        self._check_open()
        given = list(items)
        try:
            orders = self._orders(given)
            payloads = self._codec.encode_many(given)
            if self._eof:
                self._here.produce(self._run, self._token)
            self._run(self._operations.put_many(payloads, bool(block), timeout, orders))
        except PressureError as error:
            error.rest = given[error.accepted :]
            raise

    def get_many(
        self, max_items: int, block: bool = True, timeout: float | None = None
    ) -> list[Any]:
        """Take the oldest items, 1 to ``max_items`` of them, and at most 1,000 or about 1 MB.

        Blocks as :meth:`get` does until there is one; the others are those that are there too.

        Raises what :meth:`get` does. Items that cannot be decoded are set aside (see
        :meth:`rejected`): with a RejectedItemWarning when others are returned, else with the
        error of the first.
        """
        self._check_open()
        check_max_items(max_items)
        self._codec.prepare()  # nothing is taken out that this handle has no key for
        items, flights = self._receive_many(max_items, bool(block), timeout)
        try:
            return self._codec.decode_many(items)
        except Exception:  # one cannot be used, which is not the others' fault
            return self._accept_what_can_be(flights or [Flight(0, item) for item in items])

    def _accept_what_can_be(self, flights: list[Flight]) -> list[Any]:
        accepted: list[Any] = []
        problem: PressureError | None = None
        for flight in flights:
            try:
                accepted.append(self._accept(flight))
            except PressureError as error:
                problem = problem or error
        if problem is None:
            return accepted
        if not accepted:
            raise problem
        warnings.warn(str(problem), RejectedItemWarning, stacklevel=3)
        return accepted

    def _receive_many(
        self, limit: int, block: bool, timeout: float | None
    ) -> tuple[list[bytes], list[Flight]]:
        """Items, and their flights if they are in flight."""
        with self._here if self._eof else contextlib.nullcontext():
            return self._run(self._operations.get_many(limit, block, timeout, self._eof)), []

    def put_nowait(self, item: Any) -> None:
        """``put(item, block=False)``."""
        self.put(item, False)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the oldest item out of the queue.

        Blocks while the queue is empty: without limit, or at most ``timeout`` seconds; not at all
        when ``block`` is false. Those who wait are served in the order in which they came.

        Raises Empty when the time is up (ConsumerInUseError, which is an Empty, when another
        consumer was in the way), ShutDown when the queue is shut down and empty, DecodingError
        for an item that cannot be decoded and AuthenticationError for one that is not signed with a
        key of this handle (they are set aside, see :meth:`rejected`),
        QueueDoesNotExistError, HandleClosedError after :meth:`close`, ArgumentError for a
        negative timeout, BrokerUnavailable. The parts of a large item are read after it was got;
        the time for that is not part of ``timeout``. (``queue.Queue.get``; specification: Get)
        """
        self._check_open()
        self._codec.prepare()  # nothing is taken out that this handle has no key for
        return self._accept(self._receive(bool(block), timeout))

    def _accept(self, flight: Flight) -> Any:
        """The object in an item that was got; what is forged or cannot be decoded is set aside."""
        if is_manifest(flight.item):
            return self._accept_large(flight)
        try:
            return self._codec.decode(flight.item)
        except PressureError:
            self._set_aside(flight)
            raise

    def _accept_large(self, flight: Flight) -> Any:
        """The same of an item whose content may be beside the queue."""
        with self._setting_aside(flight):
            manifest = self._codec.read_manifest(flight.item)
            if manifest is None:
                return self._codec.decode(flight.item)
        try:
            content = self._run(self._operations.fetch(manifest))
        except BaseException:
            self._give_back(flight)
            raise
        with self._setting_aside(flight):
            found = self._codec.decode_large(flight.item, manifest, content)
        if not flight.seq:  # what is in flight keeps its content
            self._run(self._operations.let_go(manifest))
        return found

    @contextlib.contextmanager
    def _setting_aside(self, flight: Flight) -> Iterator[None]:
        try:
            yield
        except PressureError:
            self._set_aside(flight)
            raise

    def _receive(self, block: bool, timeout: float | None) -> Flight:
        if not self._eof:
            return Flight(0, self._run(self._operations.get(block, timeout)))
        with self._here:
            return Flight(0, self._run(self._operations.get(block, timeout, eof=True)))

    def _set_aside(self, flight: Flight) -> None:
        self._run(self._operations.reject(flight.item))

    def _give_back(self, flight: Flight) -> None:
        """What was got could not be read to its end. Here it is gone, as with its consumer."""

    def get_nowait(self) -> Any:
        """``get(block=False)``."""
        return self.get(False)

    def qsize(self) -> int:
        """How many items are queued, at one moment. Never waits."""
        return self._run(self._operations.length())

    def empty(self) -> bool:
        """Whether no item is queued, at one moment. Never waits."""
        return self.qsize() == 0

    def rejected(self, limit: int = 100) -> list[bytes]:
        """Up to ``limit`` of the items that were set aside, oldest first, as they were queued.

        They could not be decoded, were forged, or were delivered too often (``max_deliveries``).
        Of a large item it is what was queued, and behind that its content.
        """
        items = self._run(self._operations.rejected(limit))
        return [self._with_content(item) if is_manifest(item) else item for item in items]

    def _with_content(self, item: bytes) -> bytes:
        try:
            manifest = self._codec.read_manifest(item)
        except PressureError:
            return item  # what it says of its content is not to be believed
        content = self._run(self._operations.fetch(manifest)) if manifest else None
        return b"".join((item, *(content or ())))

    def close(self) -> None:
        """This handle is done; the queue and its other handles go on.

        Afterwards put and get raise HandleClosedError, a ValueError. Does not wait. What was got
        from a :class:`JoinableQueue` stays in flight, and ``task_done()`` goes on to work.
        (``multiprocessing.Queue.close``; to close the queue for everyone is ``shutdown``)
        """
        if self._eof:
            self._here.stop_producing(self._token)
        self._close_handle()

    def delete(self, timeout: float | None = None) -> None:
        """Remove the queue and all that is in it, for everyone (specification: Delete).

        Blocks while a client of another make has a role in it, at most ``timeout`` seconds.
        Raises QueueInUseError when the time is up, QueueDoesNotExistError.
        """
        self._delete(True, timeout)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    __class_getitem__ = classmethod(GenericAlias)  # type: ignore[var-annotated]


class Queue(ObjectQueue):
    """A first-in, first-out queue that processes on any machine share.

    It has the interface of ``queue.Queue`` and of ``multiprocessing.Queue``. A handle can be
    pickled: pass it to a process, or through another queue.
    """

    @classmethod
    def create(cls: type[FifoQueue], name: str, maxsize: int = 0, **options: Any) -> FifoQueue:
        """Create the queue called ``name``; the rest is as for the class itself.

        Raises QueueAlreadyExistsError (specification: Create).
        """
        return cls(maxsize=maxsize, name=name, _how="create", **options)

    @classmethod
    def attach(cls: type[FifoQueue], name: str, maxsize: int = 0, **options: Any) -> FifoQueue:
        """A handle to the queue called ``name``; the rest is as for the class itself.

        Raises QueueDoesNotExistError.
        """
        return cls(maxsize=maxsize, name=name, _how="attach", **options)

    def full(self) -> bool:
        """Whether a put would have to wait for space, at one moment. Never waits."""
        stats = self.stats()
        return 0 < stats.maxsize <= stats.length

    @property
    def maxsize(self) -> int:
        """The queue's bound, 0 for none. To set it changes it for everyone; items stay."""
        return self.stats().maxsize

    @maxsize.setter
    def maxsize(self, maxsize: int) -> None:
        self._run(self._operations.set_bound(check_maxsize(maxsize)))

    def shutdown(self, immediate: bool = False) -> None:
        """Close the queue for everyone, for good (``queue.Queue.shutdown``; specification: Close).

        Puts raise ShutDown from now on, and gets when the queue is empty; who waits is woken.
        With ``immediate``, what is queued is dropped and counts as done. Blocks only while a
        client of another make has the producer role (with ``immediate``: or the consumer role).
        """
        self._run(self._operations.close(True, None, once=False, immediate=bool(immediate)))

    @property
    def is_shutdown(self) -> bool:
        """Whether the queue was shut down. Never waits."""
        return self._run(self._operations.closed())

    def task_done(self) -> None:
        """Say that one item that was got is dealt with (``queue.Queue.task_done``). Never waits.

        Counted at the broker, over all processes and machines. Raises TaskDoneError, a
        ValueError, when it is called more often than items were put.
        """
        self._run(self._operations.task_done())

    def join(self) -> None:
        """Block until every item that was put is dealt with (``queue.Queue.join``)."""
        self._run(self._operations.join())

    @property
    def unfinished_tasks(self) -> int:
        """How many items were put and are not yet dealt with. Never waits."""
        return self.stats().unfinished

    def join_thread(self) -> None:
        """There is no thread to wait for: when a put returned, the broker has the item."""

    def cancel_join_thread(self) -> None:
        """There is no thread to wait for: when a put returned, the broker has the item."""

    def __iter__(self) -> Iterator[Any]:
        """Get items until the queue is shut down and empty; blocks for each as ``get()`` does."""
        while True:
            try:
                item = self.get()
            except ShutDown:
                return
            yield item


class JoinableQueue(Queue):
    """``multiprocessing.JoinableQueue``: a Queue whose consumers call ``task_done()``.

    What was got stays with the broker, in flight, until ``task_done()``. When the process that
    got it ends, however it ends, the item goes back to the front of the queue, in order, for the
    next consumer; over the bound if need be. Within a second when another process of the same
    host waits for an item or for :meth:`join`; on other hosts after the lease. So an item can be
    delivered more than once, and one that is never acknowledged is kept as long as its process
    lives: also when its thread has ended, and when the handle was closed.
    """

    def __init__(
        self,
        maxsize: int = 0,
        name: str | None = None,
        *,
        max_deliveries: int | None = None,
        **options: Any,
    ) -> None:
        """As for :class:`Queue`.

        :param max_deliveries: an item that was got so often, and whose consumer died each time,
            is set aside (see :meth:`rejected`) and counts as done. None is no limit.
        """
        self._limit = _check_limit(max_deliveries)
        super().__init__(maxsize, name, **options)

    def _receive(self, block: bool, timeout: float | None) -> Flight:
        return self._here.take(self._run, self._limit, block, timeout, self._eof)

    def _receive_many(
        self, limit: int, block: bool, timeout: float | None
    ) -> tuple[list[bytes], list[Flight]]:
        flights = [self._receive(block, timeout)]
        size = weight(flights[0].item)
        while len(flights) < min(limit, MOST_ITEMS) and size < MOST_BYTES:
            try:
                flights.append(self._receive(False, None))
            except PressureError:  # none is left; or the next call says what is wrong
                break
            size += weight(flights[-1].item)
        return [flight.item for flight in flights], flights

    def _set_aside(self, flight: Flight) -> None:
        self._here.set_aside(self._run, flight)

    def _give_back(self, flight: Flight) -> None:
        self._here.give_back(flight)

    def task_done(self) -> None:
        """Say that an item that was got is dealt with: it will not be delivered again.

        It is the one that this thread got first, else the one that this process did, else the
        oldest in flight: then another process got it, and passed it on. Warns with
        LateTaskDoneWarning, and counts nothing, when the item was given to another consumer
        because this process was stopped, or cut off, for longer than its lease. Never waits.

        Raises TaskDoneError, a ValueError, when it is called more often than items were put.
        (``multiprocessing.JoinableQueue.task_done``)
        """
        if not self._here.acknowledge(self._run):
            warnings.warn(
                f"task_done() on queue {self._name!r} came too late: this process did not answer "
                "for longer than its lease, and the item was given to another consumer",
                LateTaskDoneWarning,
                stacklevel=2,
            )

    def join(self) -> None:
        """Block until every item that was put is dealt with (``queue.Queue.join``).

        Meanwhile this process sees to it that what a dead consumer had goes back to the queue.
        """
        with self._here:
            super().join()


def _check_limit(max_deliveries: object) -> int:
    if max_deliveries is None:
        return 0
    if not isinstance(max_deliveries, int) or isinstance(max_deliveries, bool):
        raise ArgumentTypeError(
            f"max_deliveries is an int or None, not {type(max_deliveries).__name__}"
        )
    if max_deliveries < 1:
        raise ArgumentError(f"max_deliveries is 1 or more, not {max_deliveries}")
    return max_deliveries


class SimpleQueue(ObjectQueue):
    """The ``SimpleQueue`` of ``multiprocessing`` and ``queue``: no bound, tasks or shutdown."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        """As for :class:`Queue`, with ``maxsize`` 0."""
        super().__init__(0, name, **options)
