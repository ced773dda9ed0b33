"""``concurrent.futures.Executor`` whose workers may be on any machine."""

from __future__ import annotations

import multiprocessing
import os
import weakref
from collections.abc import Callable
from concurrent import futures
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any, TypeVar

from ..encoding.serializers import Serializer, checked
from ..encoding.task_values import milliseconds
from ..exceptions import ArgumentError, ArgumentTypeError
from ..handles.options import ObjectOptions, RecordedOptions, SignatureOf, read
from ..hidden import hide_in
from ..numeric import integer
from . import calls
from .call_queue import RECORDED, CallQueue, Options
from .client import Client
from .future import Future
from .manager import Manager
from .submitter import Submitter, WithOptions
from .worker import Calls, Setup
from .worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")

#: Seconds for which the result of a call of a named executor is kept.
RESULT_TTL = 86400.0


class Executor(Submitter, futures.Executor):
    """Runs calls in worker processes, here and on other machines, over a broker.

    It is used like :class:`concurrent.futures.ProcessPoolExecutor`, and its futures are futures of
    ``concurrent.futures``. One thing differs: if a worker dies, only its call is affected, or the
    several short calls that it has. A call is given to another worker, up to ``max_deliveries``
    times in all; then the future of this call raises :class:`WorkerLost`, and the executor stays
    usable.

    An executor without a name ends with its process; calls that no worker has taken are dropped
    then. One with a name stays at the broker: its workers may run on any machine (``python -m
    pressure_mp.worker NAME``), the program that submits may end, and :meth:`attach` and
    :meth:`future` give its futures again.
    """

    __signature__ = SignatureOf(ObjectOptions)

    #: Whether the calls have to be there.
    _attaches = False

    def __init__(
        self,
        max_workers: int | None = None,
        name: str | None = None,
        *,
        mp_context: BaseContext | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        max_tasks_per_child: int | None = None,
        max_deliveries: int = 3,
        per_key: int | None = None,
        result_ttl: float = RESULT_TTL,
        max_pending: int | None = None,
        **options: Unpack[ObjectOptions],
    ) -> None:
        """Make an executor; its workers are started when there are calls for them.

        :param max_workers: how many worker processes this executor starts at most; by default the
            number of processors. 0 starts none: workers that were started elsewhere run the calls,
            and the executor needs a name.
        :param name: the name of the queue of tasks that holds the calls. With a name, a call is at
            the broker when :meth:`submit` returns. Without one, a call is sent in the background,
            unless no other call is pending.
        :param mp_context: how workers are started, as for ProcessPoolExecutor.
        :param initializer: a callable that each worker of this process calls first, with
            ``initargs``. If it raises, the executor is broken, as ProcessPoolExecutor is.
        :param max_tasks_per_child: the number of calls after which a worker ends and another
            replaces it. An ArgumentError with the start method fork.
        :param max_deliveries: to how many workers a call is given, one after the other, if they
            die. 1 is for calls that must not run twice. With more than 2, and without ``per_key``,
            a worker takes several calls at a time while they are short. A named executor stores it.
        :param per_key: how many calls of one key run at the same time, in all workers together; see
            :meth:`options`. None means no limit. A named executor stores it.
        :param result_ttl: seconds for which the result of a call of a named executor is kept.
        :param max_pending: while this many calls of this executor wait for a worker, :meth:`submit`
            blocks. None means no limit.

        ``serializer`` encodes calls. ``"pickle"`` means pickle; and, if it is installed,
        cloudpickle for functions that pickle cannot find by name, such as lambdas. cloudpickle is
        also used for the functions and classes of ``__main__`` in a named executor or an
        interactive session, where workers may have another ``__main__``. Else it is an object with
        ``dumps`` whose bytes pickle can load, such as the modules ``pickle`` and ``cloudpickle``.
        Results and exceptions are always encoded as with ``"pickle"``. The other options mean the
        same as for :class:`pressure_mp.Queue`.

        Opens the queue of the calls, and blocks and raises as :meth:`pressure_mp.TaskQueue.open`
        does. Where ProcessPoolExecutor raises ValueError or TypeError, this raises ArgumentError
        (a ValueError) or ArgumentTypeError (a TypeError).
        """
        given = read(ObjectOptions, options, self)
        size = _check_size(max_workers, name)
        context = _check_context(mp_context, max_tasks_per_child)
        if initializer is not None and not callable(initializer):
            raise ArgumentTypeError("initializer must be a callable")
        max_deliveries = integer("max_deliveries", max_deliveries, 1)
        if max_pending is not None:
            max_pending = integer("max_pending", max_pending, 1, "an int or None")
        self._dumps = _dumps_of(given["serializer"], is_named=name is not None)
        setup = Setup(initializer, initargs)
        milliseconds("result_ttl", result_ttl, least=0.001)
        ttl = None if name is None else result_ttl
        queue = self._open(name, max_deliveries, per_key, options)
        if size and not queue.is_persistent:
            queue.close()
            raise ArgumentError(
                f"worker processes cannot see a queue at {queue.url}, which is in the memory of "
                "this process: use embedded://, or a name with max_workers=0 and workers in threads"
            )
        self._queue = queue
        client = Client(queue, ttl, max_pending, sends_later=name is None)
        calls = Calls(queue, max_tasks_per_child)
        workers = WorkerProcesses(queue, calls, size, context, setup)
        self._manager = Manager(queue, client, workers, is_anonymous=name is None)
        # A fork takes no threads along: so all are forked before there are any.
        self._begin_with = size if context.get_start_method() == "fork" else 1
        weakref.finalize(self, self._manager.close).atexit = False

    @classmethod
    def attach(cls, name: str, max_workers: int = 0, **options: Any) -> Self:
        """Attach to the existing executor called ``name``; returns an executor.

        It starts no workers of its own, unless ``max_workers`` is stated. The other options mean
        the same as for the class; ``max_deliveries`` and ``per_key`` have the stored values. Raises
        QueueDoesNotExistError; QueueMismatchError also for a queue that no executor made; and what
        the class raises.
        """
        executor = cls.__new__(cls)
        executor._attaches = True
        cls.__init__(executor, max_workers, name, **hide_in(options))
        return executor

    def _open(
        self, name: str | None, max_deliveries: int, per_key: int | None, options: ObjectOptions
    ) -> CallQueue:
        there: ObjectOptions = {**options, "serializer": "pickle"}
        there = hide_in(there)
        if self._attaches:
            assert name is not None
            return CallQueue.attach(name, **there)
        recorded: RecordedOptions = {**RECORDED, "max_deliveries": max_deliveries}
        if per_key is not None:
            recorded["per_key"] = per_key
        queue = CallQueue(name, strict=True, **recorded, **there)
        queue.open()
        return queue

    @property
    def name(self) -> str:
        """The name of the queue of tasks that holds the calls."""
        return self._queue.name

    @property
    def url(self) -> str:
        """The broker's address, without a password."""
        return self._queue.url

    @property
    def max_workers(self) -> int:
        """How many worker processes this executor starts at most."""
        return self._manager.workers.size

    @staticmethod
    def default_workers() -> int:
        """Return the default of ``max_workers``: the number of processors."""
        return _processors()

    @property
    def _broken(self) -> str | bool:
        """The reason why the executor is broken; False if it is not. As in ProcessPoolExecutor."""
        return self._manager.client.broken or False

    @property
    def _processes(self) -> dict[int | None, Any]:
        """Its workers in this process, by pid. As in ProcessPoolExecutor."""
        return self._manager.workers.processes

    def _submit_with(
        self,
        options: Options,
        block: bool,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        id: str | None,
    ) -> Future[T]:
        manager = self._manager
        client = manager.client
        client.check_open()
        try:
            payload = self._dumps((fn, args, kwargs))
        except Exception as error:
            return client.failed(error)
        manager.start(self._begin_with)
        future = client.submit(payload, options, block, id)
        manager.workers.fill(client.pending)
        return future

    def options(
        self,
        *,
        priority: float = 0,
        delay: float | None = None,
        ttl: float | None = None,
        tube: str | None = None,
        key: str | None = None,
        block: bool = True,
    ) -> Submitter:
        """Return an object that submits calls with these options.

        For example ``ex.options(priority=-1).submit(f, x)``.

        :param priority: an int or a float; the call with the lowest is taken first. :param delay:
        seconds before a worker may take the call. :param ttl: seconds within which a worker must
        take the call; else its future raises CallDropped. :param tube: a name; workers that were
        started with ``--tube`` for this tube take the call, and so do workers without it, such as
        an executor's own. :param key: a text for which calls take turns, such as a tenant: when a
        call of a key is taken, the next call of this key goes to the end of the line. At most
        ``per_key`` calls of a key run at the same time: the others wait, also while workers are
        idle. :param block: with False, :meth:`submit` raises Full where it would block because of
        ``max_pending``.

        Raises ArgumentError, ArgumentTypeError.
        """
        return WithOptions(self, Options(priority, delay, ttl, tube, key).checked(), block)

    def future(self, id: str) -> Future[Any]:
        """Return the future of a call by its ``id``, whichever process submitted the call.

        The result is available for ``result_ttl`` seconds after the call has ended. If the call
        does not exist, or its result is no longer kept, the future raises TaskNotFound or
        ResultNotKept. Blocks for one round trip. Raises ArgumentTypeError for an id that is no str.
        """
        if not isinstance(id, str):
            raise ArgumentTypeError(f"the id of a call is a str, not {type(id).__name__}")
        self._manager.start(0)
        return self._manager.client.future_of(id)

    def abort(self, future: Future[Any]) -> bool:
        """Stop a call, even if a worker runs it; returns False if it had already ended.

        A call that no worker has taken is cancelled. For a call that is running, its worker process
        is killed: at once if this executor started it, within about a second elsewhere; then the
        future raises CallAborted, and so does the future of a call that was running and waits for
        another worker. The effects that the call had until then are not undone. If the worker has
        other calls, which are short, these run again in another worker.

        Blocks for a few round trips. Raises BrokerUnavailable.
        """
        if future.cancel():
            return True
        owner = self._queue.remove(future.id)
        if owner is None:
            return False
        self._manager.workers.kill(owner)
        return True

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; calls that were submitted are still run.

        With ``wait`` this blocks, without limit, until all calls of this executor have ended and
        the workers of this process have ended. With ``cancel_futures``, calls that no worker has
        taken are cancelled. This is called automatically when the executor is garbage-collected,
        and when the interpreter ends, which waits too, unless the executor has no workers of its
        own. In a forked child of the process that made the executor, it does nothing.
        (``concurrent.futures.Executor.shutdown``)
        """
        self._manager.close()
        if cancel_futures:
            self._manager.client.cancel_queued()
        if wait:
            self._manager.join()


def client_of(executor: Executor) -> Client:
    """The client of an executor, by which the executor of asyncio waits for space."""
    return executor._manager.client


def _dumps_of(serializer: str | Serializer, is_named: bool) -> calls.Dumps:
    if isinstance(serializer, str):
        if serializer != "pickle":
            raise ArgumentError(
                f"an executor's serializer is 'pickle' or an object with dumps, not {serializer!r}"
            )
        return calls.dumps if calls.has_a_main_module() and not is_named else calls.dumps_for_others
    if not callable(getattr(serializer, "dumps", None)):
        raise ArgumentTypeError(f"serializer {serializer!r} lacks the method dumps")
    return lambda call: checked(serializer.dumps(call))


def _check_size(max_workers: int | None, name: str | None) -> int:
    if max_workers is None:
        return _processors()
    max_workers = integer("max_workers", max_workers)
    if max_workers < 0 or (max_workers == 0 and name is None):
        raise ArgumentError(
            f"max_workers must be greater than 0, not {max_workers}; or 0 for an executor with a "
            "name, whose workers are elsewhere"
        )
    return max_workers


def _processors() -> int:
    count = getattr(os, "process_cpu_count", os.cpu_count)  # the former since Python 3.13
    return count() or 1


def _check_context(given: BaseContext | None, max_tasks_per_child: int | None) -> BaseContext:
    """Choose the context as ProcessPoolExecutor does."""
    if max_tasks_per_child is not None:
        integer("max_tasks_per_child", max_tasks_per_child, 1, "an int or None")
    if given is None:
        method = "spawn" if max_tasks_per_child is not None else None
        given = multiprocessing.get_context(method)
    if max_tasks_per_child is not None and given.get_start_method(allow_none=False) == "fork":
        raise ArgumentError(
            "max_tasks_per_child is not for the start method fork: give another mp_context"
        )
    return given
