"""What users hold: the interfaces of ``queue`` and of ``multiprocessing``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..engines.contract.queues import How
from ..exceptions import (
    ArgumentError,
    ArgumentTypeError,
    LateTaskDoneWarning,
    PressureError,
    QueueDoesNotExistError,
    ShutDown,
    TaskDoneError,
)
from ..hidden import hide_in
from ..in_flight import Asking, Claim
from ..operations.deliveries import Delivery
from .handles import check_maxsize
from .object_queue import Item, ObjectQueue
from .options import QueueOptions

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ..buffering.incoming import Incoming


class Queue(ObjectQueue[Item]):
    """A first-in, first-out queue that processes on any machine share.

    It has the interface of ``queue.Queue`` and of ``multiprocessing.Queue``. A handle can be
    pickled: pass it to a process, or through another queue. A negative timeout is 0, as in
    ``multiprocessing``.
    """

    _puts_in_background = True
    _reserves_unasked = True

    @classmethod
    def create(cls, name: str, maxsize: int = 0, **options: Unpack[QueueOptions]) -> Self:
        """Create the queue called ``name``; the rest is as for the class itself.

        Raises QueueAlreadyExistsError (specification: Create).
        """
        return cls._insist(How.CREATE, maxsize=maxsize, name=name, **hide_in(options))

    @classmethod
    def attach(cls, name: str, maxsize: int = 0, **options: Unpack[QueueOptions]) -> Self:
        """A handle to the queue called ``name``; the rest is as for the class itself.

        Raises QueueDoesNotExistError.
        """
        return cls._insist(How.ATTACH, maxsize=maxsize, name=name, **hide_in(options))

    def full(self) -> bool:
        """Whether a put would have to wait for space, at one moment. Never waits."""
        stats, here = self._look(self.stats)
        return 0 < stats.maxsize <= stats.length + here

    @property
    def maxsize(self) -> int:
        """The queue's bound, 0 for none. To set it changes it for everyone; items stay."""
        return self.stats().maxsize

    @maxsize.setter
    def maxsize(self, maxsize: int) -> None:
        bound = check_maxsize(maxsize)
        if self._buffers is not None:
            self._buffers.before_put(self)
        self._run(self._operations.set_bound(bound))
        if self._buffers is not None:
            self._buffers.look_again()

    def shutdown(self, immediate: bool = False) -> None:
        """Close the queue for everyone, for good (``queue.Queue.shutdown``; specification: Close).

        Puts raise ShutDown from now on, and gets when the queue is empty; who waits is woken.
        With ``immediate``, what is queued is dropped and counts as done. Blocks only while
        another implementation has the producer role (with ``immediate``: or the consumer role).

        It first blocks until the broker has what was put through this handle, as :meth:`flush`
        does; with ``immediate`` it drops that, and what this handle fetched ahead.
        """
        if immediate and self._incoming is not None:
            self._incoming.before_look(self)
        if self._buffers is not None:
            self._buffers.before_shutdown(self, immediate)
        self._run(self._operations.close(True, None, once=False, immediate=bool(immediate)))
        if self._buffers is not None and immediate:
            self._buffers.after_shutdown(self)

    @property
    def is_shutdown(self) -> bool:
        """Whether the queue was shut down. Never waits."""
        return self._run(self._operations.closed())

    def task_done(self) -> None:
        """Say that one item that was got is dealt with (``queue.Queue.task_done``). Never waits.

        Counted at the broker, over all processes and machines. Raises TaskDoneError, a
        ValueError, when it is called more often than items were put.
        """
        self._acknowledging(self._operations.task_done())

    def join(self) -> None:
        """Block until every item that was put is dealt with (``queue.Queue.join``)."""
        self.flush()
        self._run(self._operations.join())

    @property
    def unfinished_tasks(self) -> int:
        """How many items were put and are not yet dealt with. Never waits but for what is on its
        way to the broker."""
        self._settle()
        return self.stats().unfinished

    def __iter__(self) -> Iterator[Item]:
        """Get items until the queue is shut down and empty; blocks for each as ``get()`` does."""
        while True:
            try:
                item = self.get()
            except ShutDown:
                return
            yield item


class JoinableQueue(Queue[Item]):
    """``multiprocessing.JoinableQueue``: a Queue whose consumers call ``task_done()``.

    What was got stays with the broker, in flight, until ``task_done()``. When the process that
    got it ends, however it ends, the item goes back to the front of the queue, in order, for the
    next consumer; over the bound if need be. Within a second when another process of the same
    host waits for an item or for :meth:`join`; on other hosts after the lease. So an item can be
    delivered more than once, and one that is never acknowledged is kept as long as its process
    lives: also when its thread has ended, and when the handle was closed.
    """

    _reserves_unasked = False

    def __init__(
        self,
        maxsize: int = 0,
        name: str | None = None,
        *,
        max_deliveries: int | None = None,
        **options: Unpack[QueueOptions],
    ) -> None:
        """As for :class:`Queue`.

        :param max_deliveries: an item that was got so often, and whose consumer died each time,
            is set aside (see :meth:`rejected`) and counts as done. None means no limit.
        """
        self._limit = _check_limit(max_deliveries)
        if self._limit and options.get("prefetch"):
            raise ArgumentError(
                "max_deliveries cannot go with prefetch: what a consumer that dies had fetched "
                "ahead would count as delivered"
            )
        super().__init__(maxsize, name, **hide_in(options))

    @classmethod
    def create(
        cls,
        name: str,
        maxsize: int = 0,
        *,
        max_deliveries: int | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        """As :meth:`Queue.create`; ``max_deliveries`` is as for the class itself."""
        own = {"max_deliveries": max_deliveries}
        return cls._insist(How.CREATE, maxsize=maxsize, name=name, **own, **hide_in(options))

    @classmethod
    def attach(
        cls,
        name: str,
        maxsize: int = 0,
        *,
        max_deliveries: int | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        """As :meth:`Queue.attach`; ``max_deliveries`` is as for the class itself."""
        own = {"max_deliveries": max_deliveries}
        return cls._insist(How.ATTACH, maxsize=maxsize, name=name, **own, **hide_in(options))

    def _make_incoming(self) -> Incoming:
        from ..buffering.incoming import IncomingUntilDone

        return IncomingUntilDone(self, self._fetches_ahead)

    @property
    def _goes_back(self) -> bool:
        return True

    def _claim(self) -> Claim:
        return Claim()

    def _give_up(self, claim: Claim) -> None:
        self._here.lease._give_up(claim)

    def _get_one(self, claim: Claim, block: bool = True, timeout: float | None = None) -> Item:
        (found,), _ = self._get_some(1, block, timeout, claim)
        return found

    def _get_some(
        self, limit: int, block: bool, timeout: float | None, claim: Claim
    ) -> tuple[list[Item], PressureError | None]:
        taking = self._operations.take_objects(
            self._here, claim, self._limit, limit, block, timeout, self._eof
        )
        return self._run_at_once(taking)

    def _receive(self, claim: Claim) -> Delivery:
        taking = self._operations.take_deliveries(
            self._here, claim, self._limit, 1, False, None, self._eof
        )
        return self._run_at_once(taking)[0]

    def _accept_received(self, received: Delivery, claim: Claim) -> Item:
        accepting = self._operations.accept(received.item, received.seq, self._here)
        found: Item = self._run_at_once(accepting)
        return found

    def task_done(self, *, connection: object | None = None) -> None:
        """Say that an item that was got is dealt with: it will not be delivered again.

        It is the one that this thread got first, else the one that this process did, else the
        oldest in flight: then another process got it, and passed it on. Warns with
        LateTaskDoneWarning, and counts nothing, when the item was given to another consumer
        because this process was stopped, or cut off, for longer than its lease. Never waits.

        :param connection: a connection to the queue's own PostgreSQL database, as for
            :meth:`Queue.put`: the item is dealt with if and only if its transaction commits. Until
            then it is in flight, and after a rollback it is the next to be acknowledged again.
            What came too late raises LateTaskDoneWarning, or has the commit fail. It is for items
            that this process got only.

        Raises TaskDoneError, a ValueError, when it is called more often than items were put.
        (``multiprocessing.JoinableQueue.task_done``)
        """
        asking = Asking()
        if connection is not None:
            self._acknowledge_in(connection, asking)
            return
        try:
            if self._acknowledging(self._operations.acknowledge_next(self._here, asking)):
                warnings.warn(late_task_done(self._name), stacklevel=2)
        except (TaskDoneError, QueueDoesNotExistError, LateTaskDoneWarning):
            if asking.held is not None:
                asking.held.is_done = True
            raise
        except BaseException:
            if asking.held is not None:
                self._here.in_flight.leave(asking.held)
            raise
        if asking.held is not None:
            asking.held.is_done = True

    def _acknowledge_in(self, connection: object, asking: Asking) -> None:
        session = self._session_in(connection)
        acknowledging = self._operations.acknowledge_at_commit(self._here, asking)
        try:
            if self._run_on(session, acknowledging):
                raise late_task_done(self._name)
            if asking.held is not None:
                asking.held.transaction = session.transaction
        finally:
            if asking.held is not None:
                self._here.in_flight.leave(asking.held)

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


class SimpleQueue(ObjectQueue[Item]):
    """The ``SimpleQueue`` of ``multiprocessing`` and ``queue``: no bound, tasks or shutdown.

    A negative timeout is a ValueError, as of ``queue.SimpleQueue``.
    """

    _refuses_negative_timeouts = True

    def __init__(self, name: str | None = None, **options: Unpack[QueueOptions]) -> None:
        """As for :class:`Queue`, with ``maxsize`` 0."""
        super().__init__(0, name, **hide_in(options))


def late_task_done(name: str) -> LateTaskDoneWarning:
    """What a ``task_done()`` on the queue of that name warns with."""
    return LateTaskDoneWarning(
        f"task_done() on queue {name!r} came too late: this process did not answer for longer than "
        "its lease, and the item was given to another consumer"
    )
