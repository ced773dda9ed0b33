"""What every queue of Python objects has: items are serialized, may be large, may be buffered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import events
from ..deadlines import deadline, seconds_left
from ..encoding import serializers, signing
from ..encoding.codec import Codec
from ..engines import registry
from ..engines.contract.levels import Level
from ..engines.contract.session import Binding, Engine, Options, is_local
from ..exceptions import ArgumentError, Full, HandleClosedError, PressureError
from ..operations.control import FIFO
from ..operations.objects import ObjectOperations
from .arguments import check_level, check_maxsize
from .defaults import chosen, is_stated
from .getting import GettingQueue
from .item import Item
from .options import QueueOptions, SignatureOf, read
from .transactions import check_waits_for_nothing

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")


class ObjectQueue(GettingQueue[Item], Generic[Item]):
    """The methods that all queues of Python objects share; use one of its subclasses."""

    _operations: ObjectOperations

    __signature__ = SignatureOf(QueueOptions)

    def __init__(
        self,
        maxsize: int = 0,
        name: str | None = None,
        **options: Unpack[QueueOptions],
    ) -> None:
        """Attach to the queue called ``name``, or create it if it does not exist.

        Without a name: create an anonymous queue. It exists until the last process that uses it has
        ended; then the queue and its items are removed from the broker. The items of an anonymous
        ``Queue`` may be in memory that processes of this host share, until somebody needs them
        elsewhere: see docs/shared-memory.md. ``PRESSURE_SHARED_MEMORY=0`` keeps them at the broker.

        :param maxsize: the bound: how many items the queue holds before a put waits; less than 1
            means no bound. An existing queue must have this bound; 0 attaches to any.
        :param url: where the broker (the server that keeps the queue) is: ``redis://``,
            ``rediss://``, ``unix://``, ``redis+sentinel://``, ``redis+cluster://``,
            ``postgresql://``, ``embedded://``, ``memory://``. Without it ``host``, ``port`` and
            ``db`` say it; else the environment: ``PRESSURE_URL``, or ``REDIS_SERVER``,
            ``REDIS_PORT``, ``REDIS_DB``; else it is ``127.0.0.1:6379``, database 0.
        :param prefix: the beginning of all key names of the queue; else ``PRESSURE_PREFIX``, else
            ``__pressure__``.
        :param serializer: how items become bytes: ``"pickle"``, ``"json"``, ``"text"``, ``"raw"``,
            or an object with ``dumps`` and ``loads``.
        :param authkey: the secret that items are signed with: ``bytes``, ``str``, or several of
            these. The first signs; items signed with any of them are accepted. None means
            ``PRESSURE_AUTHKEY``, where commas separate several; if that is not set, an anonymous
            queue has the key that ``multiprocessing.current_process()`` shares with its children,
            and a queue with a name does not sign.
        :param lease: seconds after which a client that stopped answering loses its turn to put or
            get to another, and the items that it has in flight (see :class:`JoinableQueue`).
        :param reconnect: seconds for which an operation tries again while the broker does not
            answer or the connection is lost; 0 fails at once. The operation is done once, however
            often the connection breaks. After about a second of trying, the logger ``pressure_mp``
            writes a warning.
        :param durability: who must confirm a put or a shutdown before it returns: ``"replica:N"``,
            N replicas of the server; ``"fsync"``, the server's append-only file; None, the server
            only. NotDurable is raised if they have not confirmed it after 5 seconds. On PostgreSQL
            the commit waits, without this limit, for N synchronous standbys, or for the disk, and
            NotDurable is raised if an administrator ends the wait for the standbys; with
            ``"off"`` it waits for neither, and a crash of the server can undo what was done in the
            last 0.6 seconds or so. ``memory://`` has neither replicas nor a disk: only None.
        :param eof: with ``"producers"``, get raises ShutDown also when the queue is empty and every
            producer has ended. A producer is a process that put through a handle with this
            option, from its first put until it closes the last such handle, ends, or dies.
        :param buffering: how many items that were put through this handle may wait in this process
            to be sent (of items over 8 KB, at most 16 MB); 0 means that put sends the item itself.
            With a buffer, put returns at once, and a thread sends all waiting items together;
            :meth:`flush`, :meth:`close` and the end of the process wait until they are sent. Only
            for first-in, first-out queues. None means ``PRESSURE_BUFFERING``, if that is set; else
            4000 for an anonymous queue that has no bound, and no ``durability``; else 0. In the
            workers of a ``multiprocessing.Pool``, these 4000 are 0, because the pool terminates
            them as soon as it has the results.
        :param prefetch: how many items get may fetch ahead, up to 1,000 in one round trip, though
            no more than this consumer's share of what is queued; what is not handed out goes back
            to the queue. With 2,000 or more, the next ones come while the last are handed out. Only
            for first-in, first-out queues. None means 0, except on an anonymous Queue without
            ``eof`` that has no bound, or a bound of 4 or more: there, while only one process gets,
            it fetches as many items as it will hand out within about 0.01 seconds, and another
            process that wants an item waits for that time.

        Blocks for the connection, at most ``reconnect`` seconds and 5 more for the last attempt.
        Raises BrokerUnavailable; WrongServerError when something other than a broker answers;
        BrokerError for a refused login; QueueMismatchError when the queue exists with another
        bound or discipline; AddressError, ArgumentError or ArgumentTypeError for an argument that
        cannot be used.
        """
        given = read(QueueOptions, options, self)
        eof = given["eof"]
        encoder = serializers.find(given["serializer"])
        keys = signing.gather(given["authkey"], name is None, os.environ)
        bound = check_maxsize(chosen(maxsize))
        if eof not in (None, "producers"):
            raise ArgumentError(f"eof is 'producers' or None, not {eof!r}")
        self._eof = eof is not None
        super().__init__(name, given)
        if self._eof:
            check_level("eof", Level.DELIVERIES, self._address)
        if given["prefetch"]:
            check_level("prefetch", Level.AHEAD, self._address)
        is_bare = self._operations.discipline == FIFO
        self._codec: Codec[Item] = Codec(
            encoder, keys, self.prefix, self._name, self._anonymous, is_bare=is_bare
        )
        self._operations.codec = self._codec
        self._choose_buffers(given["buffering"], given["prefetch"], bound)
        self._open(partial(self._opening_bounded, self._how, bound, is_stated(maxsize)))
        self._settle_where_items_are()

    def _make_operations(self) -> ObjectOperations:
        return ObjectOperations(self._name, FIFO)

    def _settle_where_items_are(self) -> None:
        """Note for a new queue whether its items are in shared memory. The note stays the same in
        this handle, and in each process that inherits it: so each of them signs where the
        binding does not, also when the items were moved meanwhile."""
        binding = self._binding
        if self._options.shares_memory and not (is_local(binding) and binding.are_here):
            self._options = self._options._replace(shares_memory=False)
            self._binding = self._bind(registry.engine(self._address))
        if self._options.shares_memory:
            self._codec.sign_late()

    def _bind(self, engine: Engine, options: Options | None = None) -> Binding:
        binding = super()._bind(engine, options)
        if self._codec.is_signed and is_local(binding):
            binding.sign_with(self._codec.sign)
        return binding

    def put(
        self,
        item: Item,
        block: bool = True,
        timeout: float | None = None,
        *,
        connection: object | None = None,
    ) -> None:
        """Put ``item`` into the queue.

        When this returns, the item is at the broker; or, with ``buffering``, which anonymous queues
        without a bound have, in the buffer of this handle; or in memory that processes of this host
        share.

        Blocks while the queue is full: without limit, or at most ``timeout`` seconds; not at all
        when ``block`` is false. Waiting clients are served in the order in which they came.

        With ``buffering``: while the buffer is full, this waits until some of it is sent, whatever
        the ``timeout``. An error that occurs after this returned is raised by the next call other
        than a get, or by :meth:`flush`. An acknowledgement raises it too, also on another queue of
        the same broker. The error's ``rest`` has the items that were put and not sent, in order.
        Items that a process puts at one broker arrive in the order of its puts, over all its
        queues, except those that wait for a full queue. A large item is not buffered: this returns
        when it and what was put before it are sent.

        Raises Full when the time is up; if the queue had space, but another producer was using it,
        that is a ProducerInUseError, which is a Full. Raises ShutDown when the queue is shut down,
        EncodingError when the item cannot be serialized, and AuthenticationError when this handle
        was pickled without its key. Raises ItemTooLargeError, QueueDoesNotExistError, and
        HandleClosedError after :meth:`close`. After each of these nothing was queued. Raises
        BrokerUnavailable when the broker did not answer for ``reconnect`` seconds, or did not
        answer when ``timeout`` was over; then it is not known whether the item is queued.
        ``timeout`` limits only the wait for space: if the connection breaks after the put was sent,
        finding out its outcome takes up to ``reconnect`` seconds longer. With ``durability``,
        raises NotDurable when the item is in the queue but was not confirmed within 5 seconds.

        A pickle of 256 KB or more is sent in chunks, before this waits for space; the time for that
        is not part of ``timeout``. Arrays are sent from their own memory: if another thread writes
        into an array meanwhile, the item may or may not have the change (on a signed queue, such an
        item is refused).

        :param connection: a connection to the queue's own PostgreSQL database, of psycopg, or of
            SQLAlchemy or Django over psycopg: the put is part of the connection's transaction. The
            item is in the queue if and only if the transaction commits, and gets its place in the
            order then; before that, nobody sees the item or waits for it. The put does not wait:
            Full is raised when the queue is full now, and a ``timeout`` is an ArgumentError. If
            other items are put before the commit, the commit may exceed the bound. The commit fails
            if the queue was shut down or deleted meanwhile. ArgumentError says why a connection
            cannot be used; see docs/postgres.md for the rest.

        (``queue.Queue.put``; specification: Put)
        """
        if connection is not None:
            check_waits_for_nothing("a timeout", timeout)
            block = False
        elif timeout is not None and block:
            timeout = self._seconds(timeout)
        try:
            if connection is None and self._outgoing is not None:
                self._outgoing.put(self, item, block, timeout)
                return
            self._check_open()
            if self._options.shares_memory and connection is None and not events.listeners:
                encoded = self._codec.encode(item)
                self._was_put_to = True
                if self._put_here(encoded):
                    return
                putting = self._operations.put(encoded, bool(block), timeout)
            else:
                order = self._order(item)
                putting = self._operations.put_object(item, bool(block), timeout, order)
            self._putting(putting, connection=connection)
        except Full as error:
            error.item = item
            raise

    def _order(self, item: Item) -> bytes:
        """Where the item belongs, as the discipline wants to know it."""
        return b""

    def _orders(self, items: Sequence[Item]) -> Sequence[bytes]:
        """The same of each, in a discipline that wants to know anything."""
        return ()

    def put_many(
        self,
        items: Iterable[Item],
        block: bool = True,
        timeout: float | None = None,
        *,
        connection: object | None = None,
    ) -> None:
        """Put all ``items`` into the queue, in order, up to 1,000 or 1 MB in each round trip.

        The iterable is read to its end, and every item serialized, before the first is queued. A
        bounded queue takes as many items as it has space for; then this blocks as :meth:`put` does,
        at most ``timeout`` seconds in all. Items of other clients may come in between.

        Raises what :meth:`put` raises. The error's ``accepted`` then says how many of the items are
        in the queue, and ``rest`` has the others, in order: all of them after an EncodingError.
        After BrokerUnavailable or NotDurable up to 1,000 items of ``rest`` may be queued too.

        Also with ``buffering`` this returns only when these items, and those that were put before,
        are at the broker.

        :param connection: as for :meth:`put`. Each 1,000 items, or 1 MB, of ``items`` follow each
            other in the queue; items of other clients may come between these groups.
        """
        self._check_open()
        if connection is not None:
            check_waits_for_nothing("a timeout", timeout)
            block = False
        elif timeout is not None and block:
            timeout = self._seconds(timeout)
        given, end = list(items), deadline(block, timeout)
        if self._buffers is not None:
            try:
                self._buffers.before_put(self, block, end)
            except Full as error:
                error.rest = given
                raise
        try:
            orders, left = self._orders(given), seconds_left(end)
            putting = self._operations.put_objects(given, bool(block), left, orders)
            self._putting(putting, connection=connection)
        except PressureError as error:
            error.rest = given[error.accepted :]
            raise

    def put_nowait(self, item: Item) -> None:
        """``put(item, block=False)``."""
        self.put(item, False)

    def qsize(self) -> int:
        """How many items are queued, at one moment. Waits for no other client.

        First, as in :meth:`empty` and :meth:`full`, items that this process has put are sent if
        they are still in a buffer. Items of this handle that wait because the queue is full, or
        that it fetched and did not return yet, are counted too. (``queue.Queue.qsize``;
        specification: Length)
        """
        length, here = self._look(lambda: self._run(self._operations.length()))
        return length + here

    def _look(self, ask: Callable[[], T]) -> tuple[T, int]:
        """What the broker answers, and how many items this handle has besides."""
        if self._incoming is not None:
            self._incoming.before_look(self)
        return (ask(), 0) if self._buffers is None else self._buffers.look(ask)

    def empty(self) -> bool:
        """Whether no item is queued, at one moment. Waits for no other client; see :meth:`qsize`.

        This works on a closed handle too, unless the queue was anonymous and ended with its last
        handle: then this raises HandleClosedError, an OSError, or returns True if nothing was ever
        put through this handle. (``multiprocessing.Queue.empty``)
        """
        try:
            return self.qsize() == 0
        except HandleClosedError:
            if self._was_put_to or (self._outgoing is not None and self._outgoing.was_used):
                raise
            return True

    def close(self) -> None:
        """Close this handle; the queue itself and its other handles stay open.

        Afterwards put and get raise HandleClosedError, a ValueError; a get in which another thread
        waits raises it within about a second. Items that came from a :class:`JoinableQueue` stay in
        flight, and ``task_done()`` still works.
        (``multiprocessing.Queue.close``; ``shutdown`` closes the queue for all clients)

        Blocks only with ``buffering``: until the items in the buffer are sent, unless
        :meth:`cancel_join_thread` was called. Items that were fetched with ``prefetch`` and not
        returned go back to the front of the queue. Raises what :meth:`flush` raises.
        """
        try:
            if self._buffers is not None:
                self._buffers.close(self)
        finally:
            if self._eof:
                self._here.stop_producing(self._token)
            if self._readable is not None:
                self._readable.close()
            self._close_handle()

    def delete(self, timeout: float | None = None) -> None:
        """Remove the queue and all its items, for all clients (specification: Delete).

        Blocks while a client of another implementation of the protocol is putting or getting:
        without limit, or at most ``timeout`` seconds. Raises QueueInUseError when the time is up,
        QueueDoesNotExistError.
        """
        if self._incoming is not None:
            self._incoming.before_look(self)
        if self._buffers is not None:
            self._buffers.discard()
        self._delete(True, timeout)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._operations.codec = self._codec
        if self._options.shares_memory:
            self._codec.sign_late()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for local in ("_buffers", "_outgoing", "_incoming", "_readable", "_kept"):
            del state[local]
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    __class_getitem__ = classmethod(GenericAlias)  # type: ignore[var-annotated]  # as of queue.Queue
