"""Put tasks, and wait until they are processed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args, overload

from ...deadlines import seconds_left
from ...encoding.task_values import (
    check_key,
    check_priority,
    check_times,
    check_tube,
    check_unique,
    encode_id,
    milliseconds,
)
from ...engines.contract.task_results import WITH_INBOX
from ...engines.contract.tasks import OnConflict, UniqueKeys
from ...exceptions import ArgumentError, ArgumentTypeError, PressureError
from ...handles.base_task import Data
from ...handles.forwarding import Forwarding
from ...handles.options import TaskPutOptions, UniqueTaskOptions
from ...handles.task_verbs import AnyTask
from ...handles.transactions import check_waits_for_nothing
from ...operations.task_producing import PutOptions
from .handle import TaskHandle
from .inbox import BaseInbox

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TaskProducer(TaskHandle[Data, AnyTask]):
    """The part of :class:`pressure_mp.TaskQueue` that is for producers."""

    @overload
    def put(
        self,
        data: Data,
        *,
        wait: None = None,
        inbox: BaseInbox | None = None,
        connection: object | None = None,
        **options: Unpack[UniqueTaskOptions],
    ) -> int | str: ...

    @overload
    def put(
        self,
        data: Data,
        *,
        wait: float,
        inbox: BaseInbox | None = None,
        **options: Unpack[TaskPutOptions],
    ) -> tuple[AnyTask, bool]: ...

    def put(
        self,
        data: Data,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        key: str | None = None,
        id: int | str | None = None,
        result_ttl: float | None = None,
        inbox: BaseInbox | None = None,
        unique: str | None = None,
        on_conflict: OnConflict = "skip",
        for_: float | None = None,
        block: bool = True,
        timeout: float | None = None,
        wait: float | None = None,
        connection: object | None = None,
    ) -> int | str | tuple[AnyTask, bool]:
        """Put a task; returns its id. When this returns, the task is at the broker.

        :param delay: seconds before the task may be taken.
        :param ttl: seconds for which the task is ready; if it is not taken in that time, it is
            removed. Instead of the queue's ``ttl``. Excludes ``delay``.
        :param priority: an int or a float; the lowest is taken first.
        :param tube: the name of a part of the queue; ``take(tube=)`` takes only from that part.
        :param key: a text for which tasks take turns, such as a tenant. Of all ready tasks of one
            key only the first is in the line of tasks to take; when it is taken, the next one of
            that key goes to the end of the line of its priority. A task without a key has its own
            place in the line. At most ``per_key`` (see the class) tasks of a key are taken at the
            same time. The same key in another tube counts as another key.
        :param id: the task's id, an int or a str, instead of one that the queue makes.
        :param result_ttl: seconds for which the task's result is kept after the task has ended; see
            :meth:`result`. Without it, the result is not kept, or only for ``inbox``.
        :param inbox: a :class:`TaskInbox` of this queue that gets the events of this task. Without
            ``result_ttl`` the result is kept until this inbox has taken it, or is gone.
        :param unique: a text of which the queue has one task at a time: it is not put while a task
            that was put with the same text is ready, waiting or taken. The text is free again when
            that task is processed, buried or removed; a buried or processed task that is made ready
            again has it again, if no other task has it. Excludes ``wait`` and ``connection``.
        :param on_conflict: what to do while another task has that text. ``"skip"``: put nothing,
            and return the id of that task. ``"error"``: raise TaskExists, whose ``id`` and
            ``state`` are that task's. ``"replace"``: give that task this put's data, ``delay``,
            ``ttl``, ``priority`` and ``tube``, and return its id; all else stays as it was put
            first. A taken task is not changed: a new task is put, which has the text from then on.
        :param for_: seconds from the put on for which the text is not free, even if the task ends
            before: at most one task is put in that time. Excludes ``on_conflict="replace"``.
        :param block: whether to wait while the queue is full: while as many tasks as its
            ``maxsize`` are ready or waiting. The puts that wait are served in the order in which
            they came. A put that ``unique`` skips needs no space.
        :param timeout: wait for space at most this many seconds; None means no limit.
        :param wait: wait at most this many seconds until the task is processed, and return what
            :meth:`wait` returns. The time for which the queue is full counts.
        :param connection: the put is part of this connection's transaction, as for
            :meth:`pressure_mp.Queue.put`: the task exists from the commit on, and its times count
            from then on. The id is returned at once; if ``id`` was stated, and a task of this id
            exists at the commit, the commit fails. It does not wait for space.

        Blocks only while the queue is full, and for ``wait``. Raises Full when there was no space,
        whose ``item`` is the data; TaskExists when the queue has a task of this id, or, with
        ``on_conflict="error"``, a task of this unique text; ShutDown, EncodingError,
        AuthenticationError, ItemTooLargeError, QueueDoesNotExistError,
        HandleClosedError, ArgumentError, ArgumentTypeError; after each of these nothing was put.
        Raises BrokerUnavailable and NotDurable as :meth:`pressure_mp.Queue.put` does.
        """
        block, end = self._at.limit_put(block, timeout, connection)
        options = put_options(delay, ttl, priority, tube, result_ttl, inbox, key)
        how, keys = (block, seconds_left(end)), None
        if unique is not None or for_ is not None or on_conflict != "skip":
            if wait is not None:
                raise ArgumentError("unique= cannot go with wait=")
            keys = unique_keys(None if unique is None else [unique], on_conflict, for_, connection)
        if connection is not None:
            check_waits_for_nothing("wait", wait)
        if wait is None:
            putting = self._at.operations.put(data, id, options, keys, *how)
            return self._run_put(putting, connection)
        limit, here = self._at.seconds(wait), self._at.here
        awaiting = self._at.operations.put_and_wait(data, id, options, limit, here, *how)
        return self._then(self._run(awaiting, self._at.while_open), self._processed)

    def put_many(
        self,
        data: Iterable[Data],
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float = 0,
        tube: str | None = None,
        key: str | None = None,
        ids: Iterable[int | str] | None = None,
        result_ttl: float | None = None,
        inbox: BaseInbox | None = None,
        unique: Iterable[str | None] | None = None,
        on_conflict: OnConflict = "skip",
        for_: float | None = None,
        block: bool = True,
        timeout: float | None = None,
        connection: object | None = None,
    ) -> list[int | str]:
        """Put a task for each of ``data``, in order, up to 1,000 or 1 MB in each round trip.

        Returns their ids. Takes the options of :meth:`put`, for each task; ``ids``, if stated,
        has an id for each, and ``unique`` a text or None for each. Of two tasks with the same
        unique text the second meets the first, and the id that is returned for it is the first
        one's, unless that has ended or, with ``on_conflict="replace"``, was taken meanwhile.

        A queue with a bound takes as many tasks as it has space for; then this blocks as
        :meth:`put` does, at most ``timeout`` seconds in all, and tasks of other clients may come in
        between. Raises what :meth:`put` raises; the error's ``accepted`` then says how many of the
        tasks were put, or met another one, and ``rest`` has the data of the others.
        """
        block, end = self._at.limit_put(block, timeout, connection)
        given = list(data)
        keys = None
        try:
            options = put_options(delay, ttl, priority, tube, result_ttl, inbox, key)
            if unique is not None or for_ is not None or on_conflict != "skip":
                keys = unique_keys(unique, on_conflict, for_, connection)
                if len(keys.keys) != len(given):
                    raise ArgumentError(
                        f"there are {len(keys.keys)} unique texts for {len(given)} tasks"
                    )
        except PressureError as error:
            error.rest = given
            raise
        how = block, seconds_left(end)
        putting = self._at.operations.put_many(given, ids, options, keys, *how)
        return self._run_put(putting, connection)

    def qsize(self, tube: str | None = None) -> int:
        """How many tasks are ready to be taken, at one moment; with ``tube``, in that tube.

        For tasks in other states see :meth:`stats`. Never waits. Raises QueueDoesNotExistError.
        """
        return self._run(self._at.operations.length(check_tube(tube)))

    def full(self) -> bool:
        """Whether a put would have to wait for space, at one moment: as many tasks as ``maxsize``
        are ready or waiting. Never waits. Raises QueueDoesNotExistError."""
        return self._then(self._run(self._at.operations.stats()), lambda stats: stats.is_full)

    @property
    def maxsize(self) -> int:
        """The queue's bound, 0 for none; :meth:`configure` changes it. Asks the broker, but never
        waits. Raises QueueDoesNotExistError."""
        return self._then(self._run(self._at.operations.recorded()), lambda its: its.maxsize)

    def wait(self, id: int | str, timeout: float | None = None) -> tuple[AnyTask, bool]:
        """Wait until a task is processed; returns the task as it is then, and a bool.

        The bool is True if the task was acknowledged; False if it was buried, killed or removed
        after its ``ttl``, or if the time is up. A task that no longer exists has the state
        ``TaskState.VOID`` and the data that it had when this was called.

        Blocks without limit, or at most ``timeout`` seconds. Raises TaskNotFound when the task does
        not exist at the call, DecodingError, AuthenticationError, QueueDoesNotExistError,
        HandleClosedError, BrokerUnavailable.
        """
        self._at.check_open()
        limit = self._at.seconds(timeout)
        waiting = self._at.operations.wait(encode_id(id), limit, self._at.here)
        return self._then(self._run(waiting), self._processed)


def put_options(
    delay: float | None,
    ttl: float | None,
    priority: float,
    tube: str | None,
    result_ttl: float | None,
    inbox: BaseInbox | None,
    key: str | None,
) -> PutOptions:
    """What a put is to say of its tasks. Raises ArgumentError, ArgumentTypeError."""
    if inbox is not None and not isinstance(inbox, BaseInbox):
        raise ArgumentTypeError(f"inbox is a TaskInbox or None, not {type(inbox).__name__}")
    kept = milliseconds("result_ttl", result_ttl, least=0.001)
    if inbox is not None and result_ttl is None:
        kept = WITH_INBOX
    name = inbox.name if inbox is not None else ""
    order = *check_times(delay, ttl), check_priority(priority), check_tube(tube)
    return *order, kept, name, check_key(key)


def unique_keys(
    texts: Iterable[str | None] | None,
    on_conflict: OnConflict,
    for_: float | None,
    connection: object | None,
) -> UniqueKeys:
    """Return the unique keys of the tasks of a put. Raises ArgumentError, ArgumentTypeError."""
    if on_conflict not in get_args(OnConflict):
        raise ArgumentError(f"on_conflict is 'skip', 'replace' or 'error', not {on_conflict!r}")
    if texts is None:
        raise ArgumentError("on_conflict= and for_= are for a put with unique=")
    if isinstance(texts, str):
        raise ArgumentTypeError("unique= of put_many has a text or None for each task")
    if not (connection is None or isinstance(connection, Forwarding)):
        raise ArgumentError("unique= cannot go with connection=")
    if on_conflict == "replace" and for_ is not None:
        raise ArgumentError(
            "for_= cannot go with on_conflict='replace': leave it out, and state delay=, which "
            "each put begins again"
        )
    keys = [check_unique(text) for text in texts]
    return UniqueKeys(keys, on_conflict, milliseconds("for_", for_, least=0.001))
