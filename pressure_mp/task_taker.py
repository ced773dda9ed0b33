"""What a worker does with a queue of tasks: take them, and say what became of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal

from . import interrupts, states, takers
from .effects import Operation
from .exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    BrokerUnavailable,
    PressureError,
    RejectedItemWarning,
    TaskError,
)
from .handles import check_max_items
from .operations.tasks import NO_EDIT, Edit, Raw
from .presence import Claim
from .processes import incarnation
from .records import call_of, check_tube, encode_id, encode_priority
from .task import UNCHANGED, Backoff, Data, Task, check_on_error
from .task_handle import TaskHandle, check_times
from .task_settings import milliseconds

#: Makes the operation for a task's id, the number of its take, a change of its data, and whether
#: the data is to be answered.
MakeOperation = Callable[[bytes, int, Edit, bool], Operation[Raw]]


class TaskTaker(TaskHandle[Data]):
    """The part of :class:`pressure_mp.TaskQueue` that is for workers."""

    def take(
        self,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
        ack: Task[Data] | None = None,
    ) -> Task[Data]:
        """Take the next task; of one tube, if one is given.

        Blocks until there is one: without limit, or at most ``timeout`` seconds; with 0 or less not
        at all. Those who wait are served in the order in which they came. A take that was sent is
        settled, which takes up to ``reconnect`` seconds longer when the connection breaks.

        :param ttr: seconds until the task is ready again if nothing is said of it; instead of the
            queue's own.
        :param on_error: what becomes of the task when a ``with`` block over it raises.
        :param backoff: after that, seconds until it may be taken again; or a callable that is given
            how often the task was delivered, and answers them.
        :param ack: a task to acknowledge first: as :meth:`ack` does, which raises what it does, and
            then nothing is taken. Mostly both are one round trip.

        Raises Empty when the time is up, ShutDown when the queue is shut down and no task is ready,
        DecodingError for a task that cannot be decoded and AuthenticationError for one that is not
        signed with a key of this handle (they are buried), QueueDoesNotExistError,
        HandleClosedError, ArgumentError, ArgumentTypeError, BrokerUnavailable.
        """

        if timeout is not None:
            timeout = self._seconds(timeout)
        if ack is not None:
            next_one = self._take_next(ack, ttr, tube, on_error, backoff)
            if next_one is not None:
                return next_one
        (task,) = self._take(1, timeout, ttr, tube, on_error, backoff)
        return task

    def take_many(
        self,
        max_tasks: int,
        timeout: float | None = None,
        *,
        ttr: float | None = None,
        tube: str | None = None,
        on_error: Literal["release", "bury"] = "release",
        backoff: Backoff | None = None,
    ) -> list[Task[Data]]:
        """Take the next tasks: 1 to ``max_tasks``, and at most 1,000 or about 1 MB.

        Blocks as :meth:`take` does until there is one; the others are those that are ready too.
        Raises what :meth:`take` does. Those that cannot be decoded are buried: with a
        RejectedItemWarning when others are returned, else with the error of the first.
        """

        check_max_items(max_tasks)
        timeout = self._seconds(timeout)
        return self._take(max_tasks, timeout, ttr, tube, on_error, backoff)

    def _take(
        self,
        limit: int,
        timeout: float | None,
        ttr: float | None,
        tube: str | None,
        on_error: str,
        backoff: Backoff | None,
    ) -> list[Task[Data]]:
        own_ttr, longest = self._prepare(ttr, on_error, backoff)
        where, wait = check_tube(tube), (timeout != 0, timeout or None)
        claim = Claim()
        try:
            call = claim.call = takers.number()
            taking = self._operations.take(incarnation(), call, limit, where, own_ttr, *wait)
            taken = self._here.take_tasks(self._run, taking, call, longest)
            return self._tasks(taken, on_error, backoff)
        except PressureError as error:
            if isinstance(error, BrokerError | BrokerUnavailable):
                self._here.doubt(claim.call)
            raise
        except BaseException:
            interrupts.abandoned += [(self._here, claim)]
            interrupts.settle()
            raise

    def _prepare(
        self, ttr: float | None, on_error: str, backoff: Backoff | None
    ) -> tuple[int | None, int]:
        """Check what a take is given; answers the ttr in milliseconds, and how long a task can be
        taken then."""
        self._check_open()
        check_on_error(on_error, backoff)
        self._codec.prepare()  # nothing is taken that this handle has no key for
        if ttr is None:
            return None, self._settings.ttr
        own_ttr = milliseconds("ttr", ttr, least=0.001)
        return own_ttr, own_ttr

    def _take_next(
        self,
        done: Task[Data],
        ttr: float | None,
        tube: str | None,
        on_error: str,
        backoff: Backoff | None,
    ) -> Task[Data] | None:
        """Acknowledge a task, and take the next one if one call can do both; else None."""
        if not isinstance(done, Task):
            raise ArgumentTypeError(f"ack is a task that was taken, not {type(done).__name__}")
        own_ttr, longest = self._prepare(ttr, on_error, backoff)
        if tube is not None or done.has_tube or self._settings.processed != states.VOID:
            check_tube(tube)
            done.ack()
            return None
        here, me, claim = self._here, incarnation(), Claim()
        call = claim.call = takers.number()
        try:
            reply = self._do("next", self._operations.next_args(*done.fence, me, call, own_ttr))
            if len(reply) == 5:  # what happens mostly
                now, taken = reply[1], [Raw(*reply[2:])]
            else:
                now, taken = self._run(self._operations.following(reply, me, call))
            if not now:
                done.ack()
                return None
            here.keep([task.id for task in taken], call, longest, done.fence)
            here.look_after()
            done.end(now)
            return self._tasks(taken, on_error, backoff)[0] if taken else None
        except PressureError as error:
            if isinstance(error, BrokerError | BrokerUnavailable):
                here.doubt(call)
            raise
        except BaseException:
            interrupts.abandoned += [(here, claim)]
            interrupts.settle()
            raise

    def _tasks(self, taken: list[Raw], on_error: str, backoff: Backoff | None) -> list[Task[Data]]:
        """What was taken, as its user sees it; what cannot be used is buried."""
        try:
            data = self._codec.decode_many([raw.data for raw in taken])
        except Exception as error:  # of one of them, or more
            if interrupts.is_from_outside(error):
                raise
            tasks = self._sort_out(taken)
        else:
            tasks = []
            for raw, one in zip(taken, data, strict=True):
                tasks.append(Task(self, raw.id, one, raw.record))
        for task in tasks:
            task.on_error, task.backoff = on_error, backoff
        return tasks

    def _sort_out(self, taken: list[Raw]) -> list[Task[Data]]:
        """The tasks that can be used; the others are buried."""
        tasks: list[Task[Data]] = []
        problem: PressureError | None = None
        for raw in taken:
            try:
                tasks.append(self._task(raw))
            except PressureError as error:
                problem = problem or error
                self._bury_raw(raw, error)
        if problem is not None:
            if not tasks:
                raise problem
            warnings.warn(str(problem), RejectedItemWarning, stacklevel=4)
        return tasks

    def _bury_raw(self, raw: Raw, error: PressureError) -> None:
        """Bury a task whose data cannot be used."""
        call = call_of(raw.record)
        burying = self._operations.bury(
            raw.id, incarnation(), call, 0, None, f"{type(error).__name__}: {error}", NO_EDIT, False
        )
        try:
            self._run(burying)
        except TaskError:
            pass  # it is no longer ours
        self._here.lose(raw.id, call)

    def ack(
        self,
        task: Task[Data] | int | str,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        delay: float | None = None,
        tube: str | None = None,
    ) -> Task[Data]:
        """The task is processed: it is removed, or stays as a zombie or as done.

        Answers the task as it is now, with the state ``TaskState.VOID`` if it is removed. So do
        :meth:`release`, :meth:`bury` and :meth:`touch`, which take these arguments too:

        :param task: a task that was taken, or its id.
        :param update: what the data is from now on; or a callable that is given the data, and
            answers the new. With an id, when the data was changed meanwhile, it is called again.
        :param delay: seconds as a zombie, instead of the queue's own; for a queue without ``keep``.
        :param tube: move it there.

        Never waits. Raises NotTaken when nobody has the task, NotOwner when another process or a
        later take has it, TaskNotFound, EncodingError, QueueDoesNotExistError, ArgumentError,
        ArgumentTypeError, BrokerUnavailable. It works on a closed handle.
        """

        wait = None if delay is None else milliseconds("delay", delay, least=0.001)
        if wait is not None and self._settings.keep:
            raise ArgumentError(f"queue {self._name!r} keeps its tasks: there is no zombie's delay")
        where = None if tube is None else check_tube(tube)

        def acking(id: bytes, call: int, edit: Edit, whole: bool) -> Operation[Raw]:
            return self._operations.ack(id, incarnation(), call, wait, where, edit, whole)

        return self._by_taker(task, update, acking)

    def _by_taker(
        self, task: Task[Data] | int | str, update: Any, make: MakeOperation
    ) -> Task[Data]:
        """What a taker does with a task: it has it no longer, unless it touches it."""
        id, call = self._fence(task)
        edited = self._edit(task, update, lambda edit, whole: make(id, call, edit, whole))
        if edited.state != states.TAKEN:
            self._here.lose(id, call)
        return edited

    def _fence(self, task: Task[Data] | int | str) -> tuple[bytes, int]:
        """A task's id, and the number of the take by which this process has it."""
        if isinstance(task, Task):
            return task.fence
        id = encode_id(task)
        return id, self._here.call_of(id)

    def ack_many(self, tasks: Iterable[Task[Data] | int | str]) -> None:
        """Acknowledge tasks, up to 1,000 in each round trip. Never waits.

        Those that cannot be are left out; then what :meth:`ack` raises for the first of them is
        raised in the end: ``accepted`` is how many were acknowledged, and ``rest`` are the others.
        """

        given = list(tasks)
        fences = [self._fence(task) for task in given]
        problems = self._run(self._operations.ack_many(fences, incarnation()))
        self._here.lose_many(
            fence for fence, problem in zip(fences, problems, strict=True) if problem is None
        )
        processed = self._settings.processed
        left: list[Task[Data] | int | str] = []
        first: PressureError | None = None
        for task, problem in zip(given, problems, strict=True):
            if problem is None:
                if isinstance(task, Task):
                    task.settle(processed)
            else:
                left.append(task)
                first = first or problem
        if first is not None:
            first.accepted = len(given) - len(left)
            first.rest = left
            raise first

    def release(
        self,
        task: Task[Data] | int | str,
        *,
        delay: float | None = None,
        ttl: float | None = None,
        priority: float | None = None,
        tube: str | None = None,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        error: str | None = None,
    ) -> Task[Data]:
        """Give the task back: it is ready for others, in its old place, or waits for a delay.

        :param delay: seconds before it may be taken again.
        :param ttl: seconds for which it is ready, instead of the queue's own. Excludes ``delay``.
        :param priority: its priority from now on.
        :param error: what went wrong: it is kept with the task.

        The rest is as for :meth:`ack`. After ``max_deliveries`` the task is buried instead.
        """

        wait, life = check_times(delay, ttl)
        urgency = b"" if priority is None else encode_priority(priority)
        where = None if tube is None else check_tube(tube)

        def releasing(id: bytes, call: int, edit: Edit, whole: bool) -> Operation[Raw]:
            options = wait, life, urgency, where, error or ""
            return self._operations.release(id, incarnation(), call, *options, edit, whole)

        return self._by_taker(task, update, releasing)

    def bury(
        self,
        task: Task[Data] | int | str,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
        ttl: float | None = None,
        tube: str | None = None,
        error: str | None = None,
    ) -> Task[Data]:
        """Put the task aside, until an administrator kicks, kills or switches it.

        :param ttl: seconds for which it is buried; then it is dropped. None is for good.
        :param error: why; it is kept with the task.

        The rest is as for :meth:`ack`.
        """

        where = None if tube is None else check_tube(tube)
        life = milliseconds("ttl", ttl, least=0.001)

        def burying(id: bytes, call: int, edit: Edit, whole: bool) -> Operation[Raw]:
            me = incarnation()
            return self._operations.bury(id, me, call, life, where, error or "", edit, whole)

        return self._by_taker(task, update, burying)

    def touch(
        self,
        task: Task[Data] | int | str,
        increment: float | None = None,
        *,
        update: Data | Callable[[Data], Data] = UNCHANGED,
    ) -> Task[Data]:
        """Have the task for ``increment`` seconds more; without, for the queue's ``ttr`` from now.

        A task that is ready is kept for longer too: it is dropped so much later; without
        ``increment``, after the queue's ``ttl`` from now. Anybody may do that, with the task's id
        or a :class:`Task` that was ready when it was looked at or given back. Who had taken a task
        and lost it is told so.

        Nothing changes for a task without a ttr, or a ready one without a ttl. The rest is as for
        :meth:`ack`.
        """

        more = None if increment is None else milliseconds("increment", increment, least=0.001)

        def touching(id: bytes, call: int, edit: Edit, whole: bool) -> Operation[Raw]:
            return self._operations.touch(id, incarnation(), call, more, edit, whole)

        if isinstance(task, Task) and task.state == states.READY:
            task = task.id  # it is nobody's
        id, call = self._fence(task)
        touched = self._by_taker(task, update, touching)
        if touched.state == states.TAKEN and touched.due is not None:
            self._here.keep([id], call, max(int((touched.due - touched.since) * 1000), 1))
        return touched
