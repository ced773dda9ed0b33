"""A queue of Python objects in threads: what users of every order of it hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ..buffering import choosing
from ..buffering.direct import DirectGet, DirectPut
from ..effects import AnyOperation, Operation
from ..encoding import serializers, signing
from ..encoding.codec import Codec
from ..engines.contract.levels import Level
from ..exceptions import ArgumentError, Full, HandleClosedError
from ..handles.arguments import check_level, check_maxsize
from ..handles.defaults import chosen, is_stated
from ..handles.item import Item
from ..handles.objects import ObjectAttachment
from ..handles.options import QueueOptions, SignatureOf, read
from ..handles.orders import Order
from ..numeric import integer
from ..operations.control import FIFO
from ..operations.objects import ObjectOperations
from . import readable
from .absent import Absent, refuse_hooks
from .handles import ItemHandle

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")
U = TypeVar("U")


class ObjectQueue(ItemHandle, Generic[Item]):
    """The methods that all queues of Python objects share; use one of its subclasses."""

    #: How items are taken: for good, or until they are done.
    _attachment_class: ClassVar[type[ObjectAttachment]] = ObjectAttachment
    _at: ObjectAttachment
    _puts: DirectPut
    _gets: DirectGet

    _make_operations = staticmethod(partial(ObjectOperations, discipline=FIFO))
    _order = Order()

    __signature__ = SignatureOf(QueueOptions)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_hooks(cls)

    def __init__(
        self,
        maxsize: int = 0,
        name: str | None = None,
        **options: Unpack[QueueOptions],
    ) -> None:
        """Attach to the queue called ``name``, or create it if it does not exist.

        Without a name: create an anonymous queue. It exists until the last process that uses it has
        ended; then the queue and its items are removed from the broker. The items of an anonymous
        ``Queue`` may be in memory that processes of this host share, until they are needed
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
            no more than this consumer's share of the queued items; items not handed out go back
            to the queue. With 2,000 or more, the next ones come while the last are handed out. Only
            for first-in, first-out queues. None means 0, except on an anonymous Queue without
            ``eof`` that has no bound, or a bound of 4 or more: there, while only one process gets,
            it fetches as many items as it will hand out within about 0.01 seconds, and another
            process that wants an item waits for that time.

        With a name, does no I/O: the first call opens the queue, see :meth:`open`. Without a name,
        opens it, and blocks and raises as :meth:`open` does. Raises AddressError, ArgumentError or
        ArgumentTypeError for an argument that cannot be used.
        """
        given = read(QueueOptions, options, self)
        eof = given["eof"]
        encoder = serializers.find(given["serializer"])
        keys = signing.gather(given["authkey"], name is None, os.environ)
        bound = check_maxsize(chosen(maxsize))
        if eof not in (None, "producers"):
            raise ArgumentError(f"eof is 'producers' or None, not {eof!r}")
        how, is_of_asyncio = self._opens
        queue = self._attachment_class(self._traits(), name, given, how, is_of_asyncio)
        if eof is not None:
            check_level("eof", Level.DELIVERIES, queue.address)
        if given["prefetch"]:
            check_level("prefetch", Level.AHEAD, queue.address)
        self._at = queue
        queue.eof, queue.order = eof is not None, self._order
        of_queue = queue.address.prefix, queue.name, queue.is_anonymous
        queue.use(Codec(encoder, keys, *of_queue, is_bare=queue.is_fifo))
        choosing.choose(queue, given["buffering"], given["prefetch"], bound)
        self._equip(queue)
        stated = is_stated(maxsize)
        queue.open(lambda at: at.opening_bounded(how, bound, stated))

    def _equip(self, queue: ObjectAttachment) -> None:
        """Make the ways to put and get in this process."""
        self._puts, self._gets = choosing.make(queue)

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
        queues, except items that wait for a full queue. A large item is not buffered: this returns
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

        :param connection: a connection to the queue's own database, of psycopg or sqlite3, or of
            SQLAlchemy or Django over these: the put is part of the connection's transaction. The
            item is in the queue if and only if the transaction commits; before that, no client sees
            the item. The put does not wait: Full is raised when the queue is full now, and a
            ``timeout`` is an ArgumentError. ArgumentError says why a connection cannot be used. In
            PostgreSQL the item gets its place in the order at the commit, which may exceed the
            bound, and fails if the queue was shut down or deleted meanwhile. In SQLite no other
            process puts or gets until the commit. See docs/postgres.md and docs/sqlite.md.

        (``queue.Queue.put``; specification: Put)
        """
        if connection is not None:
            self._put_in(connection, item, block, timeout)
            return
        if timeout is not None and block:
            timeout = self._at.seconds(timeout)
        try:
            self._puts.put(self._at, item, block, timeout)
        except Full as error:
            error.item = item
            raise

    def _put_in(self, connection: object, item: Item, block: bool, timeout: float | None) -> None:
        queue = self._at
        try:
            block, end = queue.limit_put(block, timeout, connection)
            queue.run_put(queue.putting(item, block, end), connection)
        except Full as error:
            error.item = item
            raise

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
        block, end = self._at.limit_put(block, timeout, connection)
        return self._put_many(list(items), block, end, connection)

    def _put_many(
        self, given: list[Item], block: bool, end: float | None, connection: object | None
    ) -> None:
        queue = self._at
        try:
            self._puts.make_way(queue, block, end)
        except Full as error:
            error.rest = given
            raise
        putting = queue.putting_many(given, block, end)
        if connection is None:
            self._puts.run_put(queue, putting)
        else:
            queue.run_put(putting, connection)

    def put_nowait(self, item: Item) -> None:
        """``put(item, block=False)``."""
        return self.put(item, False)

    def get(self, block: bool = True, timeout: float | None = None) -> Item:
        """Take the oldest item out of the queue.

        Blocks while the queue is empty: without limit, or at most ``timeout`` seconds; not at all
        when ``block`` is false. Waiting clients are served in the order in which they came.

        Raises Empty when the time is up; if another consumer was using the queue, that is a
        ConsumerInUseError, which is an Empty. Raises ShutDown when the queue is shut down and
        empty. Raises DecodingError for an item that cannot be decoded, and AuthenticationError for
        one that is not signed with a key of this handle; both items are set aside, see
        :meth:`rejected`. Raises QueueDoesNotExistError, HandleClosedError after :meth:`close`, and
        BrokerUnavailable when the broker did not answer for ``reconnect`` seconds. ``timeout``
        limits only the wait for an item: if the connection breaks after the get was sent, finding
        out its outcome takes up to ``reconnect`` seconds longer, so that a short timeout loses no
        item. The chunks of a large item are read after that; the time for this is not part of
        ``timeout``.
        (``queue.Queue.get``; specification: Get)

        With ``prefetch`` this returns a prefetched item, and asks the broker only when none is
        left. If this process is killed, another process of this user and host puts the items back
        that get had not returned. If a process of another host does, the items that get returned in
        the last half second may be delivered again.
        """
        queue = self._at
        if timeout is not None and block:
            timeout = queue.seconds(timeout)
        if queue.readable is not None:
            return self._get_and_look(queue.readable, 1, bool(block), timeout)[0]
        if queue.kept and (kept := queue.take_kept()):
            found: Item = kept[0]
            return found
        found = self._gets.get(queue, block, timeout)
        return found

    def get_nowait(self) -> Item:
        """``get(block=False)``."""
        return self.get(False)

    def get_many(
        self, max_items: int, block: bool = True, timeout: float | None = None
    ) -> list[Item]:
        """Take the oldest items, 1 to ``max_items`` of them, and at most 1,000 or about 1 MB.

        Blocks as :meth:`get` does until there is one item; then takes, without waiting, as many
        more as are queued.

        Raises what :meth:`get` raises. Items that cannot be decoded are set aside (see
        :meth:`rejected`). If others can be returned, this warns with RejectedItemWarning; else it
        raises the error of the first.

        With ``prefetch`` this returns prefetched items, and asks the broker only when none are
        left.
        """
        queue = self._at
        queue.check_open()
        max_items = integer("max_items", max_items, 1)
        if timeout is not None and block:
            timeout = queue.seconds(timeout)
        if queue.readable is not None:
            return self._get_and_look(queue.readable, max_items, bool(block), timeout)
        if queue.kept and (kept := queue.take_kept()):
            return kept
        return self._gets.get_many(queue, max_items, bool(block), timeout)

    def _get_and_look(
        self, descriptor: readable.Readable, limit: int, block: bool, timeout: float | None
    ) -> list[Item]:
        queue = self._at
        if queue.kept and (kept := queue.take_kept()):
            return kept
        return descriptor.after(
            lambda look: self._gets.get_many(queue, limit, block, timeout, look)
        )

    def qsize(self) -> int:
        """How many items are queued, at one moment. Waits for no other client.

        First, as in :meth:`empty` and :meth:`full`, items that this process has put are sent if
        they are still in a buffer. Items of this handle that wait because the queue is full, or
        that it fetched and did not return yet, are counted too. (``queue.Queue.qsize``;
        specification: Length)
        """
        return self._count(self._at.operations.length(), in_all)

    def _count(self, operation: Operation[T], then: Callable[[T, int], U]) -> U:
        """What ``then`` makes of the broker's reply, and of how many items are only here."""
        self._gets.before_look(self._at)
        found, unsent = self._puts.count(lambda: self._run(operation))
        return then(found, unsent + len(self._gets))

    def _run_behind(self, operation: AnyOperation[T]) -> T:
        """Run an operation that looks at the queued items: also at those that were read ahead."""
        self._gets.before_look(self._at)
        return self._run(operation)

    def empty(self) -> bool:
        """Whether no item is queued, at one moment. Waits for no other client; see :meth:`qsize`.

        This works on a closed handle too, unless the queue was anonymous and ended with its last
        handle: then this raises HandleClosedError, an OSError, or returns True if nothing was ever
        put through this handle. (``multiprocessing.Queue.empty``)
        """
        try:
            return self.qsize() == 0
        except HandleClosedError:
            if self._at.was_put_to or self._puts.was_used:
                raise
            return True

    def flush(self) -> None:
        """Block until all items that were put through this handle are at the broker.

        There is no time limit. Without ``buffering`` there is nothing to wait for. Raises the error
        with which the broker refused an item since the last call (see :meth:`put`). The error's
        ``rest`` has the items that were put and not sent, in order; after BrokerUnavailable or
        NotDurable up to 1,000 of these may be queued too.
        """
        self._puts.flush(self._at)

    def join_thread(self) -> None:
        """Do the same as :meth:`flush` (``multiprocessing.Queue.join_thread``)."""
        self.flush()

    def cancel_join_thread(self) -> None:
        """Do not wait in :meth:`close`, or at the end of the process, for items to be sent.

        Items that are still in the buffer then may be lost.
        (``multiprocessing.Queue.cancel_join_thread``)
        """
        self._puts.cancel_join()

    def fileno(self) -> int:
        """A file descriptor that is readable while the queue has an item to get.

        It is for ``select``, ``selectors``, ``multiprocessing.connection.wait`` and asyncio's
        ``add_reader``. It is also readable when the queue is empty and shut down, or was deleted:
        then get raises that. The first call makes it, for this process and this handle: a forked
        child calls this again. Blocks for one round trip to the broker.

        From then on a thread, one for all queues of the process, asks the broker every 0.03
        seconds, and every 0.01 seconds for a second after a change; and each get through this
        handle asks again before it returns, so that the descriptor is not readable because of the
        item that was just got. It may be readable for about 0.01 seconds after another consumer got
        the last item: with several consumers use :meth:`get_nowait`. Raises HandleClosedError, an
        OSError.
        """
        return self._reader.fileno()

    @property
    def _reader(self) -> readable.Readable:
        """The attribute of ``multiprocessing.Queue`` for programs that wait for several queues; see
        :meth:`fileno`."""
        return readable.of(self._at, self._gets)

    @property
    def _poll(self) -> Callable[..., bool]:
        return self._reader.poll

    _writer = Absent("a put goes to the broker at once; full() tells whether it would wait")
    _rlock = Absent("the broker decides whose turn it is")
    _wlock = Absent("the broker decides whose turn it is")
    _sem = Absent("the bound is at the broker: see maxsize and full()")
    _notempty = Absent("put() sends the item, or with buffering a thread does; see flush()")
    _buffer = Absent("put() sends the item, or with buffering a thread does; see flush()")
    queue = Absent("the items are at the broker: purge() drops them, peek() shows the next")
    mutex = Absent("each method is one step at the broker; purge() drops all items in one")
    not_empty = Absent("get() waits for an item, and fileno() is readable when there is one")
    not_full = Absent("put() waits for space; full() tells whether it would")
    all_tasks_done = Absent("join() waits for them")

    def peek(self, max_items: int = 1) -> list[Item]:
        """The next items, up to ``max_items``, in the order in which they would be got.

        The items stay in the queue, and other clients may get them meanwhile. Waits for no other
        client. Raises AuthenticationError or DecodingError for an item that cannot be decoded; it
        stays in the queue too. Raises QueueDoesNotExistError, and ArgumentError for ``max_items``
        below 1.
        """
        max_items = integer("max_items", max_items, 1)
        return self._run_behind(self._at.operations.peek_objects(max_items))

    def purge(self, timeout: float | None = None) -> int:
        """Drop all items that are queued, for all clients; returns how many.

        The items count as got and as done. Items in flight stay in flight, and the queue can be
        used as before. Blocks while a client of another implementation of the protocol is getting:
        without limit, or at most ``timeout`` seconds. Raises QueueInUseError when the time is up,
        QueueDoesNotExistError.
        """
        return self._run_behind(self._at.operations.purge(True, self._at.seconds(timeout)))

    def rejected(self, limit: int = 100) -> list[bytes]:
        """Up to ``limit`` of the items that were set aside, oldest first, as bytes.

        An item is set aside when it could not be decoded, was not signed with a key of the handle
        that got it, or was delivered too often (``max_deliveries``). The bytes are as they were
        queued; for a large item they are followed by its content. Waits for no other client. Raises
        QueueDoesNotExistError.
        """
        return self._run(self._at.operations.rejected_with_content(integer("limit", limit, 1)))

    def requeue_rejected(self) -> int:
        """Put the items that were set aside back into the queue; returns how many.

        They go behind the items that are queued, even if the queue is full. Waits for no other
        client. Raises ArgumentError for a PriorityQueue or FairQueue, because the bytes of an item
        do not tell its priority or key; ShutDown, QueueDoesNotExistError.
        """
        return self._run(self._at.operations.requeue_all_rejected())

    def drop_rejected(self) -> int:
        """Remove the items that were set aside, for good; returns how many.

        Waits for no other client. Raises QueueDoesNotExistError.
        """
        return self._run(self._at.operations.drop_all_rejected())

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
        queue = self._at
        try:
            self._puts.turn_off()
            self._gets.give_back(queue)
            self._puts.close(queue)
        finally:
            if queue.eof:
                queue.here.stop_producing(queue.token)
            if queue.readable is not None:
                queue.readable.close()
            queue.close()

    def delete(self, timeout: float | None = None) -> None:
        """Remove the queue and all its items, for all clients (specification: Delete).

        Blocks while a client of another implementation of the protocol is putting or getting:
        without limit, or at most ``timeout`` seconds. Raises QueueInUseError when the time is up,
        QueueDoesNotExistError.
        """
        self._puts.discard()
        self._run_behind(self._at.deleting(True, timeout))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._equip(self._at)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_puts"], state["_gets"]
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    __class_getitem__ = classmethod(GenericAlias)  # type: ignore[var-annotated]  # as queue.Queue has it


def in_all(length: int, here: int) -> int:
    """How many items there are at the broker and here."""
    return length + here
