"""What every queue of Python objects has: items are serialized, may be large, may be buffered."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import interrupts
from ..buffering import unsent
from ..drivers import drive, drive_on
from ..effects import AnyOperation
from ..encoding import serializers, signing
from ..encoding.codec import Codec
from ..engines import registry
from ..exceptions import (
    ArgumentError,
    Full,
    HandleClosedError,
    PressureError,
    QueueDoesNotExistError,
    RejectedItemWarning,
)
from ..operations.control import FIFO
from ..operations.objects import ObjectOperations
from . import readable
from .administered import AdministeredQueue
from .arguments import check_max_items, check_maxsize
from .defaults import chosen, is_stated
from .options import QueueOptions, SignatureOf, read
from .readable import Readable
from .transactions import check_waits_for_nothing

if TYPE_CHECKING:  # a queue without buffers need not load them
    import typing_extensions
    from typing_extensions import Self, Unpack


T = TypeVar("T")
#: Of items of which the program says nothing, as in ``Queue.attach("jobs")``, checkers take Any.
if TYPE_CHECKING:
    Item = typing_extensions.TypeVar("Item", default=Any)
else:  # what they look at is not needed to run, and typing has it only from Python 3.13 on
    Item = TypeVar("Item")


class ObjectQueue(AdministeredQueue[Item], Generic[Item]):
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
        ended; then the queue and its items are removed from the broker.

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
            the commit waits, without this limit, for N synchronous standbys, or for the disk; with
            ``"off"`` it waits for neither, and a crash of the server can undo what was done in the
            last second. ``memory://`` has neither replicas nor a disk: only None.
        :param eof: with ``"producers"``, get raises ShutDown also when the queue is empty and every
            producer has ended. A producer is a process that put through a handle with this
            option, from its first put until it closes the last such handle, ends, or dies.
        :param buffering: how many items that were put through this handle may wait in this process
            to be sent (of items over 8 KB, at most 16 MB); 0 means that put sends the item itself.
            With a buffer, put returns at once, and a thread sends all waiting items together;
            :meth:`flush`, :meth:`close` and the end of the process wait until they are sent. Only
            for first-in, first-out queues. None means ``PRESSURE_BUFFERING``, if that is set; else
            4000 for an anonymous queue without ``durability`` that has no bound, or has a bound of
            4 or more and no ``eof``; else 0. In daemonic processes, such as the workers of a
            ``Pool``, these 4000 are 0, because such a process may be terminated at any moment. If
            the queue has a bound, put uses the buffer only while this process alone puts and has
            space reserved: so an item has its place in the queue when put returns.
        :param prefetch: how many items get may fetch in one round trip, though no more than this
            consumer's share of what is queued; what is not handed out goes back to the queue. Only
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
        is_bare = self._operations.discipline == FIFO
        self._codec: Codec[Item] = Codec(
            encoder, keys, self.prefix, self._name, self._anonymous, is_bare=is_bare
        )
        self._operations.codec = self._codec
        self._choose_buffers(given["buffering"], given["prefetch"], bound)
        self._open(partial(self._opening_bounded, self._how, bound, is_stated(maxsize)))

    def _reset(self) -> None:
        super()._reset()
        self._kept: deque[Item] = deque()  # got by calls that were interrupted
        self._readable: Readable | None = None

    def _make_operations(self) -> ObjectOperations:
        return ObjectOperations(self._name, FIFO)

    def put(
        self,
        item: Item,
        block: bool = True,
        timeout: float | None = None,
        *,
        connection: object | None = None,
    ) -> None:
        """Put ``item`` into the queue.

        When this returns, the item is at the broker; or, with ``buffering``, which most anonymous
        queues have, in the buffer of this handle.

        Blocks while the queue is full: without limit, or at most ``timeout`` seconds; not at all
        when ``block`` is false. Waiting clients are served in the order in which they came.

        With ``buffering``: while the buffer is full, this waits until some of it is sent, whatever
        the ``timeout``. An error that occurs after this returned is raised by the next call other
        than a get, by :meth:`flush`, or by an acknowledgement, also on another queue of the same
        broker; the error's ``rest`` has the items that were put and not sent, in order. Items that
        a process puts at one broker arrive in the order of its puts, over all its queues, except
        those that wait for a full queue. A large item is not buffered: this returns when it and
        what was put before it are sent.

        Raises Full when the time is up (ProducerInUseError, which is a Full, when not the bound but
        another producer was in the way), ShutDown when the queue is shut down, EncodingError when
        the item cannot be serialized, AuthenticationError when this handle was pickled without its
        key, ItemTooLargeError, QueueDoesNotExistError, HandleClosedError after :meth:`close`. After
        each of these nothing was queued. Raises BrokerUnavailable when the broker did not answer
        for ``reconnect`` seconds, or did not answer when ``timeout`` was over; then it is not known
        whether the item is queued. ``timeout`` limits only the wait for space: if the connection
        breaks after the put was sent, finding out its outcome takes up to ``reconnect`` seconds
        longer. With ``durability``, raises NotDurable when the item is in the queue but was not
        confirmed within 5 seconds.

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
            self._put_in(connection, item, timeout)
            return
        if timeout is not None and block:
            timeout = self._seconds(timeout)
        if self._outgoing is not None:
            try:
                self._outgoing.put(self, item, block, timeout)
            except Full as error:
                error.item = item
                raise
            return
        self._check_open()
        order = self._order(item)
        try:
            self._putting(self._operations.put_object(item, bool(block), timeout, order))
        except Full as error:
            error.item = item
            raise

    def _put_in(self, connection: object, item: Item, timeout: float | None) -> None:
        check_waits_for_nothing("a timeout", timeout)
        self._check_open()
        order = self._order(item)
        try:
            self._putting_in(connection, self._operations.put_object(item, False, None, order))
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
        if self._buffers is not None:
            self._buffers.before_put(self)
        given = list(items)
        try:
            orders = self._orders(given)
            putting = self._operations.put_objects(given, bool(block), timeout, orders)
            if connection is None:
                self._putting(putting)
            else:
                self._putting_in(connection, putting)
        except PressureError as error:
            error.rest = given[error.accepted :]
            raise

    def get_many(
        self, max_items: int, block: bool = True, timeout: float | None = None
    ) -> list[Item]:
        """Take the oldest items, 1 to ``max_items`` of them, and at most 1,000 or about 1 MB.

        Blocks as :meth:`get` does until there is one item; then takes, without waiting, as many
        more as are queued.

        Raises what :meth:`get` raises. Items that cannot be decoded are set aside (see
        :meth:`rejected`). If others can be returned, this warns with RejectedItemWarning; else it
        raises the error of the first.

        With ``prefetch`` this returns items that were fetched before, and asks the broker only when
        none are left; an item that cannot be decoded raises its error when its turn comes.
        """
        self._check_open()
        check_max_items(max_items)
        if timeout is not None and block:
            timeout = self._seconds(timeout)
        if self._readable is not None:
            return self._readable.after(
                lambda look: self._get_many(max_items, bool(block), timeout, look)
            )
        return self._get_many(max_items, bool(block), timeout)

    def _get_many(
        self, limit: int, block: bool, timeout: float | None, look: Callable[[], None] | None = None
    ) -> list[Item]:
        """``look`` is called when the items are there. If they do not come to be returned, because
        it was interrupted, they go back all the same."""
        if self._incoming is None:
            self._check_open()
        if self._kept and (kept := self._take_kept()):
            return kept
        if self._incoming is not None:
            return self._incoming.get_many(self, limit, block, timeout, look)
        return self._get_many_at_once(limit, block, timeout, look)

    def _get_many_at_once(
        self, limit: int, block: bool, timeout: float | None, look: Callable[[], None] | None
    ) -> list[Item]:
        if unsent.senders:
            timeout = self._settle_for(block, timeout)

        def receive(claim: Any) -> list[Item]:
            found, problem = self._get_some(limit, block, timeout, claim)
            if problem is not None:
                warnings.warn(str(problem), RejectedItemWarning, stacklevel=5)
            return found

        return self._handing_out(self._looking(receive, look))

    def _take_kept(self) -> list[Item]:
        """The first item that was got by a call that was interrupted, if there is one."""
        try:
            for item in interrupts.pops(self._kept):
                return [item]
        except IndexError:
            pass
        return []

    def _looking(
        self, receive: Callable[[Any], list[Item]], look: Callable[[], None] | None
    ) -> Callable[[Any], list[Item]]:
        """``receive``, and then a look."""
        if look is None:
            return receive
        goes_back = self._goes_back

        def receive_and_look(claim: Any) -> list[Item]:
            found = receive(claim)
            if not goes_back:
                claim.found = found
            look()
            return found

        return receive_and_look

    @property
    def _goes_back(self) -> bool:
        """Whether the engine can take back what an interrupted get took."""
        return self._address.capabilities.persistent

    def _give_up(self, claim: Any) -> None:
        if claim.found is None:
            super()._give_up(claim)
            return
        claim.interrupted()
        claim.end()
        # No call from here on: each is kept once, by whichever call and thread that comes first.
        found, claim.found = claim.found, []
        self._kept += found

    def _get_one(self, claim: Any, block: bool = True, timeout: float | None = None) -> Item:
        operation: AnyOperation[Item] = self._operations.get_object(block, timeout, self._eof)
        return self._getting(operation, claim)

    def _get_some(
        self, limit: int, block: bool, timeout: float | None, claim: Any
    ) -> tuple[list[Item], PressureError | None]:
        """Objects; and the first error, if others could not be used."""
        return self._getting(self._operations.get_objects(limit, block, timeout, self._eof), claim)

    def _getting(self, operation: AnyOperation[T], claim: Any) -> T:
        """Run an operation that gets something for good, on the session that is the claim."""
        if self._eof:
            with self._here:
                return drive_on(operation, claim)
        return drive_on(operation, claim, self._watching)

    def _watching(self) -> contextlib.AbstractContextManager[None]:
        """Who sees to it, while a get waits, that what a dead process had comes back."""
        return self._here if self._operations.discipline == FIFO else contextlib.nullcontext()

    def put_nowait(self, item: Item) -> None:
        """``put(item, block=False)``."""
        self.put(item, False)

    def get(self, block: bool = True, timeout: float | None = None) -> Item:
        """Take the oldest item out of the queue.

        Blocks while the queue is empty: without limit, or at most ``timeout`` seconds; not at all
        when ``block`` is false. Waiting clients are served in the order in which they came.

        Raises Empty when the time is up (ConsumerInUseError, which is an Empty, when another
        consumer was in the way), ShutDown when the queue is shut down and empty, DecodingError
        for an item that cannot be decoded and AuthenticationError for one that is not signed with a
        key of this handle (both are set aside, see :meth:`rejected`), QueueDoesNotExistError,
        HandleClosedError after :meth:`close`, BrokerUnavailable when the broker did not answer for
        ``reconnect`` seconds. ``timeout`` limits only the wait for an item: if the connection
        breaks after the get was sent, finding out its outcome takes up to ``reconnect`` seconds
        longer, so that a short timeout loses no item. The chunks of a large item are read after
        that; the time for this is not part of ``timeout``.
        (``queue.Queue.get``; specification: Get)

        With ``prefetch`` this returns an item that was fetched before, and asks the broker only
        when none is left. If this process is killed, items that get returned in the last half
        second, and that were fetched together with others, may be delivered again.
        """
        if timeout is not None and block:
            timeout = self._seconds(timeout)
        if self._readable is not None:
            after = self._readable.after
            return after(lambda look: self._get_many(1, bool(block), timeout, look))[0]
        if self._incoming is None:
            self._check_open()
        if self._kept and (kept := self._take_kept()):
            return kept[0]
        if self._incoming is not None:
            found: Item = self._incoming.get(self, block, timeout)
            return found
        if timeout is None and block and not unsent.senders:
            return self._handing_out(self._get_one)
        return self._get_at_once(bool(block), timeout)

    def _get_at_once(self, block: bool, timeout: float | None) -> Item:
        if unsent.senders:
            timeout = self._settle_for(block, timeout)
        return self._handing_out(partial(self._get_one, block=block, timeout=timeout))

    def _may_get(self) -> bool:
        """Whether a get would not wait, but give an item or raise that there is none to come."""
        if self._kept or self._incoming:
            return True
        # The next look tries again: this one must not keep a get waiting, or other queues.
        at_once, kind = self._options._replace(reconnect=0), self._operations.discipline
        try:
            if self._binding is None:
                self._attach()
            if self._incoming is not None:
                self._incoming.before_look(self)
            binding = registry.engine(self._address).bind(self._name, kind, at_once)
            return drive(self._operations.may_get(), binding.session())
        except QueueDoesNotExistError:
            return True

    @property
    def _reader(self) -> Readable:
        """As of ``multiprocessing.Queue``, for programs that wait for several queues at once; see
        :meth:`fileno`."""
        return readable.of(self)

    @property
    def _poll(self) -> Callable[..., bool]:
        return self._reader.poll

    _writer = readable.Absent("a put goes to the broker at once; full() says if it would wait")
    _rlock = readable.Absent("whose turn it is the broker says")
    _wlock = readable.Absent("whose turn it is the broker says")
    _sem = readable.Absent("the broker knows the bound; see maxsize and full()")
    _notempty = readable.Absent(
        "put() sends the item, or with buffering a thread does; see flush()"
    )
    _buffer = readable.Absent("put() sends the item, or with buffering a thread does; see flush()")

    def fileno(self) -> int:
        """A file descriptor that is readable while the queue has an item to get.

        It is for ``select``, ``selectors``, ``multiprocessing.connection.wait`` and asyncio's
        ``add_reader``. It is also readable when the queue is empty and shut down, or was deleted:
        then get raises that. The first call makes it, for this process and this handle: a forked
        child calls this again. Blocks for one round trip to the broker.

        From then on a thread, one for all queues of the process, asks the broker about a hundred
        times a second; and each get through this handle asks again before it returns, so that the
        descriptor is not readable because of the item that was just got. It may be readable for
        about 0.01 seconds after another consumer got the last item: with several consumers use
        :meth:`get_nowait`. Raises HandleClosedError, an OSError.
        """
        return self._reader.fileno()

    def _receive(self, claim: Any) -> Any:
        return self._getting(self._operations.get(False, None, self._eof), claim)

    def _accept_received(self, received: Any, claim: Any) -> Item:
        found: Item = drive_on(self._operations.accept(received), claim)
        return found

    def get_nowait(self) -> Item:
        """``get(block=False)``."""
        return self.get(False)

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

        Afterwards put and get raise HandleClosedError, a ValueError. Items that were got from a
        :class:`JoinableQueue` stay in flight, and ``task_done()`` still works.
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
            self._buffers.discard(self)
        self._delete(True, timeout)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._operations.codec = self._codec

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
