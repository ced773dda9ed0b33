"""The queues with the interfaces of ``queue`` and ``multiprocessing``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..engines.contract.levels import Level
from ..engines.contract.queues import How, Stats
from ..exceptions import (
    ArgumentError,
    EncodingError,
    LateTaskDoneWarning,
    ShutDown,
)
from ..handles.arguments import check_maxsize
from ..handles.handle import check_forward
from ..handles.item import Item
from ..handles.objects import UntilDone
from ..handles.options import ForwardOptions, JoinableOptions, QueueOptions, SignatureOf
from ..hidden import hide_in
from ..in_flight import Asking
from ..numeric import integer
from .object_queue import ObjectQueue

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Queue(ObjectQueue[Item]):
    """A first-in, first-out queue that processes on any machine share.

    It has the interface of ``queue.Queue`` and of ``multiprocessing.Queue``. The items are kept by
    a broker, a server that all processes connect to; an object of this class is a handle to the
    queue. A handle can be pickled: pass it to a process, or through another queue. A negative
    timeout means 0, as in ``multiprocessing``.
    """

    _buffers_unasked = True

    @classmethod
    def create(cls, name: str, maxsize: int = 0, **options: Unpack[QueueOptions]) -> Self:
        """Create the queue called ``name``, with the other arguments of the class.

        Raises QueueAlreadyExistsError (specification: Create), and what the class raises.
        """
        return cls._insist(How.CREATE, maxsize=maxsize, name=name, **hide_in(options))

    @classmethod
    def attach(cls, name: str, maxsize: int = 0, **options: Unpack[QueueOptions]) -> Self:
        """Attach to the existing queue called ``name``, with the other arguments of the class.

        Returns a handle. Raises QueueDoesNotExistError, and what the class raises.
        """
        return cls._insist(How.ATTACH, maxsize=maxsize, name=name, **hide_in(options))

    def full(self) -> bool:
        """Whether a put would have to wait for space, at one moment (``queue.Queue.full``).

        Waits for no other client; see :meth:`qsize`.
        """
        return self._count(self._at.operations.stats(), _is_full)

    @property
    def maxsize(self) -> int:
        """The queue's bound in items, 0 for none. Setting it changes it for all clients.

        Items stay in the queue, also those over a smaller bound. Setting raises ArgumentTypeError
        for what has no ``__index__``; both raise QueueDoesNotExistError. Never waits for space or
        items.
        """
        return self.stats().maxsize

    @maxsize.setter
    def maxsize(self, maxsize: int) -> None:
        bound, queue = check_maxsize(maxsize), self._at
        self._puts.before_bound(queue)
        self._run(queue.operations.set_bound(bound))
        self._puts.after_bound()

    def shutdown(self, immediate: bool = False) -> None:
        """Shut the queue down for all clients, for good.

        From now on a put raises ShutDown, and so does a get when the queue is empty; clients that
        wait are woken. With ``immediate``, the items that are queued are dropped and count as done.
        (``queue.Queue.shutdown``; specification: Close)

        Blocks while a client of another implementation of the protocol is putting (with
        ``immediate`` also while one is getting), without limit. With ``buffering`` it first blocks
        until the items in the buffer are sent, as :meth:`flush` does, and raises what that raises;
        with ``immediate`` it drops them, and the items that this handle fetched with ``prefetch``.
        """
        queue = self._at
        if immediate:
            self._gets.before_look(queue)
        self._puts.before_shutdown(queue, immediate)
        self._run(queue.operations.close(True, None, once=False, immediate=bool(immediate)))
        if immediate:  # also what a thread fetched meanwhile
            self._gets.give_back(queue, self._gets.patience)

    @property
    def is_shutdown(self) -> bool:
        """Whether the queue was shut down. Never waits."""
        return self._run(self._at.operations.closed())

    def task_done(self) -> None:
        """Report that the work for one item is done (``queue.Queue.task_done``).

        The broker counts these calls, over all processes and machines; see :meth:`join`. Waits for
        no other client. Raises TaskDoneError, a ValueError, when it is called more often than items
        were put.
        """
        return self._acknowledge(self._at.operations.task_done())

    def join(self) -> None:
        """Block, without limit, until the work for every item is done (``queue.Queue.join``).

        That is: until ``task_done()`` was called as often as items were put, by any process.
        """
        self.flush()
        self._run(self._at.operations.join())

    @property
    def unfinished_tasks(self) -> int:
        """How many items were put whose work is not yet done: see :meth:`join`.

        Waits only until items in the buffer of this process are sent.
        """
        self._at.settle()
        return self.stats().unfinished

    def __iter__(self) -> Iterator[Item]:
        """Get items until the queue is shut down and empty; each step blocks as ``get()`` does."""
        while True:
            try:
                item = self.get()
            except ShutDown:
                return
            yield item


class JoinableQueue(Queue[Item]):
    """A Queue whose consumers call ``task_done()`` (``multiprocessing.JoinableQueue``).

    An item that was got is *in flight*: the broker keeps it until ``task_done()`` is called. When
    the process that got it ends or dies, the item goes back to the front of the queue, in order,
    for the next consumer. It goes back even if the queue is full. This takes up to a second while
    another process of the same host waits for an item or in :meth:`join`; otherwise it happens
    after the ``lease``. So an item can be delivered more than once. An item for which
    ``task_done()`` is never called stays in flight as long as its process lives. That is so even if
    the thread that got it has ended, or the handle was closed.
    """

    _attachment_class = UntilDone
    _at: UntilDone
    _levels = (Level.ITEMS, Level.DELIVERIES)

    __signature__ = SignatureOf(JoinableOptions)

    def __init__(
        self, maxsize: int = 0, name: str | None = None, **options: Unpack[JoinableOptions]
    ) -> None:
        """Attach to the queue or create it, as for :class:`Queue`.

        :param max_deliveries: how often an item is delivered at most. After so many deliveries
            without ``task_done()``, because each consumer died, it is set aside (see
            :meth:`rejected`) and counts as done. None means no limit. An ArgumentError together
            with ``prefetch``.
        """
        others: Any = options
        limit = _check_limit(others.pop("max_deliveries", None))
        if limit and options.get("prefetch"):
            raise ArgumentError(
                "max_deliveries cannot go with prefetch: what a consumer that dies had fetched "
                "ahead would count as delivered"
            )
        super().__init__(maxsize, name, **hide_in(others))
        self._at.max_deliveries = limit

    @classmethod
    def create(cls, name: str, maxsize: int = 0, **options: Unpack[JoinableOptions]) -> Self:
        """Create a queue, as :meth:`Queue.create`; ``max_deliveries`` is that of the class."""
        return cls._insist(How.CREATE, maxsize=maxsize, name=name, **hide_in(options))

    @classmethod
    def attach(cls, name: str, maxsize: int = 0, **options: Unpack[JoinableOptions]) -> Self:
        """Attach to a queue, as :meth:`Queue.attach`; ``max_deliveries`` is that of the class."""
        return cls._insist(How.ATTACH, maxsize=maxsize, name=name, **hide_in(options))

    def task_done(self, *, connection: object | None = None) -> None:
        """Acknowledge an item that was got: its work is done, and it is not delivered again.

        Of the items in flight it is the first that this thread got; if there is none, the first
        that this process got; if there is none, the oldest of all (which another process got and
        handed to this one). Warns with LateTaskDoneWarning, and counts nothing, when the item was
        given to another consumer because this process was stopped, or had no connection, for longer
        than its ``lease``. Waits for no other client.

        :param connection: a connection to the queue's own database, as for
            :meth:`Queue.put`: the item is acknowledged if and only if the connection's transaction
            commits. Until then it is in flight; after a rollback the next ``task_done()`` is for
            it again. If this comes too late, LateTaskDoneWarning is raised, or the commit fails.
            Only for items that this process got.

        Raises TaskDoneError, a ValueError, when it is called more often than items were put.
        (``multiprocessing.JoinableQueue.task_done``)
        """
        asking, queue = Asking(), self._at
        if connection is not None:
            self._acknowledge_in(connection, asking)
            return
        try:
            if queue.acknowledge(asking):
                warnings.warn(late_task_done(queue.name), stacklevel=2)
            if asking.held is not None:
                asking.held.is_done = True
        except BaseException as error:
            try:
                queue.note_end(asking, error)
            finally:
                asking.is_over = True
            raise

    def forward(self, queue: Any, item: Any, **options: Unpack[ForwardOptions]) -> Any:
        """Acknowledge an item that was got, and put ``item`` on another queue, in one step at the
        broker: both are done, or neither is, whichever program or server stops meanwhile.

        Of the items in flight it acknowledges the first that this thread got; if there is none, the
        first that this process got. The queue has a name, as the other one has.

        :param queue: the queue to put on: one with a name, of any order, or a TaskQueue. It is at
            the same server, database or file, of which both handles have the same URL; in a
            cluster it is in the same hash slot. It may be this queue.
        :param item: the item, or the data of the task, to put.
        :param options: options of the other queue's ``put``, such as ``timeout`` or ``delay``;
            without ``wait`` and ``connection``.

        Blocks as that put does while the other queue is full. Meanwhile the item stays in flight.
        After Full, and each other error of the put, it is still this thread's.

        Returns what that put returns. Raises what it raises; TaskDoneError when this process has no
        item in flight; and, as an error, LateTaskDoneWarning when the item was given to another
        consumer, and nothing was put. Raises ArgumentError, before anything is done, if the queues
        are not at the same place. Raises BrokerUnavailable when it is not known whether both was
        done.
        """
        check_forward(self, queue, options)
        asking, at = Asking(), self._at
        try:
            return queue.put(item, connection=at.forwarding(asking), **options)
        finally:
            asking.is_over = True

    def _acknowledge_in(self, connection: object, asking: Asking) -> None:
        queue = self._at
        session = queue.session_in(connection)
        acknowledging = queue.operations.acknowledge_at_commit(queue.here, asking)
        try:
            if queue.run_on(session, acknowledging):
                raise late_task_done(queue.name)
            if asking.held is not None:
                asking.held.transaction = session.transaction
        finally:
            asking.is_over = True

    def join(self) -> None:
        """Block, without limit, until every item that was put is acknowledged or set aside.

        Meanwhile this process puts the items of dead consumers back into the queue.
        (``multiprocessing.JoinableQueue.join``)
        """
        with self._at.here:
            super().join()


def _is_full(stats: Stats, here: int) -> bool:
    return 0 < stats.maxsize <= stats.length + here


def _check_limit(max_deliveries: object) -> int:
    if max_deliveries is None:
        return 0
    return integer("max_deliveries", max_deliveries, 1, "an int or None")


class SimpleQueue(ObjectQueue[Item]):
    """A queue without a bound, ``task_done()``, ``join()`` or ``shutdown()``.

    It has the interface of ``queue.SimpleQueue`` and ``multiprocessing.SimpleQueue``. A negative
    timeout raises ValueError, as in ``queue.SimpleQueue``.
    """

    _refuses_negative_timeouts = True

    def __init__(self, name: str | None = None, **options: Unpack[QueueOptions]) -> None:
        """Attach to the queue or create it, as for :class:`Queue` with ``maxsize`` 0."""
        super().__init__(0, name, **hide_in(options))

    def put(
        self,
        item: Item,
        block: bool = True,
        timeout: float | None = None,
        *,
        connection: object | None = None,
    ) -> None:
        """Put ``item`` into the queue; as :meth:`Queue.put`, which never waits here.

        Raises what that raises; but where the serializer fails, the serializer's own error in place
        of EncodingError. (``multiprocessing.SimpleQueue.put``)
        """
        try:
            super().put(item, block, timeout, connection=connection)
            return
        except EncodingError as error:
            raised = error.__cause__ or error
        raise raised


def late_task_done(name: str) -> LateTaskDoneWarning:
    """What a ``task_done()`` on the queue of that name warns with."""
    return LateTaskDoneWarning(
        f"task_done() on queue {name!r} came too late: the item was given to another consumer, as "
        "this process did not answer for longer than its lease; or the broker lost its data"
    )
