"""An attachment to a queue of tasks: the operations of its verbs, with their arguments checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .. import states
from ..background import takers
from ..background.takers import Takers
from ..effects import Operation
from ..encoding.codec import Codec
from ..encoding.task_values import (
    check_priority,
    check_times,
    check_tube,
    encode_id,
    milliseconds,
)
from ..engines import registry
from ..engines.contract.task_records import HeldTask, TaskRecord, TaskSettings
from ..exceptions import ArgumentError, PressureError
from ..in_flight import Claim
from ..numeric import integer
from ..operations.task_producing import PutOptions
from ..operations.task_queue import DecodedTask
from ..operations.task_settling import UNCHANGED, Subject
from ..operations.task_stats import TaskStats
from ..operations.task_taking import Delivery
from ..operations.tasks import TaskOperations
from ..states import TaskState
from .attachment import Attachment, Traits
from .base_task import BaseTask, TaskOrId

#: A task of either world.
AnyTask = TypeVar("AnyTask")


class TaskAttachment(Attachment):
    """An attachment to a queue of tasks. What ends in *-ing* returns the operation of a verb, and
    raises ArgumentError and ArgumentTypeError."""

    operations: TaskOperations
    codec: Codec[Any]
    settings: TaskSettings
    #: Makes ids, in a queue whose ids a callable makes.
    make_id: Callable[[], int | str] | None

    of_one_process = (*Attachment.of_one_process, "_stats")

    def begin(self, traits: Traits) -> None:
        super().begin(traits)
        self._stats: TaskStats | None = None
        if "settings" in self.__dict__:  # it was unpickled
            self.equip()

    def learn(self, settings: TaskSettings) -> None:
        """Note the settings of the queue, which is open now."""
        self.settings = settings
        self.equip()

    def equip(self) -> None:
        """Give the operations what the handle knows."""
        self.operations.codec = self.codec
        self.operations.settings = self.settings
        self.operations.make_id = self.make_id

    @property
    def here(self) -> Takers:
        """This process as a taker."""
        if self._presence is None:
            engine = registry.engine(self.address)
            self._presence = takers.of(engine, self.name, self.options.lease)
        found: Takers = self._presence
        return found

    # Producers

    def putting_and_waiting(
        self, data: Any, id: int | str | None, options: PutOptions, wait: float
    ) -> Operation[tuple[DecodedTask, bool]]:
        """Put a task, and wait ``wait`` seconds until it is processed."""
        limit = self.seconds(wait)
        return self.operations.put_and_wait(data, id, options, limit, self.here)

    def putting_many(
        self,
        data: Iterable[Any],
        ids: Iterable[int | str] | None,
        check: Callable[[], PutOptions],
    ) -> Operation[list[int | str]]:
        """Put a task for each of ``data``; an error of ``check`` has all of them as ``rest``."""
        given = list(data)
        try:
            options = check()
        except PressureError as error:
            error.rest = given
            raise
        return self.operations.put_many(given, ids, options)

    def waiting(self, id: int | str, timeout: float | None) -> Operation[tuple[DecodedTask, bool]]:
        """Wait until a task is processed."""
        return self.operations.wait(encode_id(id), self.seconds(timeout), self.here)

    def asking_for_result(self, id: int | str, timeout: float | None) -> Operation[Any]:
        """Wait for a task's result."""
        return self.operations.result(encode_id(id), self.seconds(timeout), self.here)

    # Workers

    def taking(
        self,
        make: Callable[[bytes, TaskRecord, Any], AnyTask],
        claim: Claim,
        number: int,
        timeout: float | None,
        ttr: float | None,
        tube: str | None,
        ack: BaseTask[Any] | None,
        retries_alone: bool = False,
    ) -> Operation[Delivery[AnyTask]]:
        """Take up to ``number`` tasks, for this claim."""
        where = check_tube(tube)
        own_ttr = None if ttr is None else milliseconds("ttr", ttr, least=0.001)
        call = claim.begin()
        how = number, where, own_ttr, timeout, ack, retries_alone
        return self.operations.take(make, self.here, call, *how)

    def acking(
        self,
        task: TaskOrId,
        update: Any,
        delay: float | None,
        tube: str | None,
        result: Any,
        at_commit: bool,
    ) -> Operation[DecodedTask]:
        """Acknowledge a task; if a transaction commits, with ``at_commit``."""
        wait = None if delay is None else milliseconds("delay", delay, least=0.001)
        if wait is not None and self.settings.keep:
            raise ArgumentError(
                f"queue {self.name!r} keeps its tasks, so ack(delay=) has no meaning there: "
                "leave it out"
            )
        where = None if tube is None else check_tube(tube)
        if result is UNCHANGED:
            result = task.result if isinstance(task, BaseTask) else None
        ack = self.operations.ack_at_commit if at_commit else self.operations.ack
        return ack(self._subject(task), self.here, update, wait, where, result)

    def _subject(self, task: TaskOrId) -> Subject:
        """A task, with the number of the take by which this process has it."""
        if isinstance(task, BaseTask):
            return Subject(task.id_bytes, task.call, True, task.data, bool(task.record.result_ttl))
        return Subject(*self._held(task))

    def _held(self, task: TaskOrId) -> HeldTask:
        if isinstance(task, BaseTask):
            return task.id_bytes, task.record.call
        id = encode_id(task)
        return id, self.here.call_of(id)

    def acking_many(self, given: Sequence[TaskOrId]) -> Operation[None]:
        """Acknowledge tasks. The error of the first that cannot be says how many were."""
        return self._acking_held(given, [self._held(task) for task in given])

    def acking_many_at_commit(self, given: Sequence[TaskOrId]) -> Operation[None]:
        """Acknowledge tasks if a transaction commits."""
        helds = [self._held(task) for task in given]
        return self.operations.ack_many_at_commit(helds, self.here, _results_of(given))

    def _acking_held(self, given: Sequence[TaskOrId], helds: list[HeldTask]) -> Operation[None]:
        problems = yield from self.operations.ack_many(helds, self.here, _results_of(given))
        processed = self.settings.processed
        for place, task in enumerate(given):
            if place not in problems and isinstance(task, BaseTask):
                task.become_record(task.record.into(processed))
        if problems:
            left = sorted(problems)
            first = problems[left[0]]
            first.accepted = len(given) - len(left)
            first.rest = [given[place] for place in left]
            raise first

    def releasing(
        self,
        task: TaskOrId,
        update: Any,
        delay: float | None,
        ttl: float | None,
        priority: float | None,
        tube: str | None,
        error: str | BaseException | None,
    ) -> Operation[DecodedTask]:
        """Give a task back."""
        wait, life = check_times(delay, ttl)
        urgency = None if priority is None else check_priority(priority)
        where = None if tube is None else check_tube(tube)
        options = wait, life, urgency, where, error
        return self.operations.release(self._subject(task), self.here, update, *options)

    def burying(
        self,
        task: TaskOrId,
        update: Any,
        ttl: float | None,
        tube: str | None,
        error: str | BaseException | None,
    ) -> Operation[DecodedTask]:
        """Set a task aside."""
        where = None if tube is None else check_tube(tube)
        life = milliseconds("ttl", ttl, least=0.001)
        return self.operations.bury(self._subject(task), self.here, update, life, where, error)

    def touching(
        self, task: TaskOrId, increment: float | None, update: Any
    ) -> Operation[DecodedTask]:
        """Extend the time of a task."""
        more = None if increment is None else milliseconds("increment", increment, least=0.001)
        subject = self._subject(task)
        if isinstance(task, BaseTask) and task.state == states.READY:
            subject = self._subject(task.id)  # no process has it
        return self.operations.touch(subject, self.here, update, more)

    # Administrators

    def counting(self) -> Operation[TaskStats]:
        """Count the tasks, and the changes since the last count through this handle."""
        now = yield from self.operations.stats()
        rates = now.rates_since(self._stats)
        self._stats = now
        return now.with_rates(rates)

    def kicking(
        self, task: TaskOrId, delay: float | None, ttl: float | None, update: Any
    ) -> Operation[DecodedTask]:
        """Make a buried task ready."""
        wait, life = check_times(delay, ttl)
        to = states.WAITING if wait else states.READY
        return self.operations.change("kick", _id(task), to, wait, life, update=update)

    def kicking_many(
        self, limit: int | None, delay: float | None, ttl: float | None
    ) -> Operation[int]:
        """Make buried tasks ready."""
        wait, life = check_times(delay, ttl)
        most = None if limit is None else integer("limit", limit, 0, "an int or None")
        return self.operations.kick_many(most, wait, life)

    def killing(self, task: TaskOrId) -> Operation[DecodedTask]:
        """Remove a task."""
        return self.operations.change("kill", _id(task), states.VOID)

    def listing(
        self, state: TaskState | str | None, tube: str | None, limit: int
    ) -> Operation[list[DecodedTask]]:
        """Look at tasks."""
        limit = integer("limit", limit, 1)
        wanted = "".join(states.NAMES) if state is None else _state(state)
        return self.operations.list(wanted, check_tube(tube), limit)

    def moving(self, task: TaskOrId, tube: str | None) -> Operation[DecodedTask]:
        """Move a task to another tube."""
        return self.operations.change("move", _id(task), "", tube=check_tube(tube))

    def switching(
        self, task: TaskOrId, state: TaskState | str, delay: float | None
    ) -> Operation[DecodedTask]:
        """Change the state of a task."""
        to = _state(state)
        wait, _ = check_times(delay, None)
        if to == states.TAKEN:
            raise ArgumentError("a task cannot be switched to taken: take it")
        if to == states.WAITING and not wait:
            raise ArgumentError("a task that waits needs a delay: switch(..., delay=)")
        if to == states.ZOMBIE and not (wait or self.settings.zombie):
            raise ArgumentError(f"queue {self.name!r} has no time for zombies: switch(..., delay=)")
        if wait and to not in (states.WAITING, states.ZOMBIE):
            raise ArgumentError(f"there is no delay for a task that is {states.word(to)}")
        return self.operations.change("switch", _id(task), to, wait)

    def beginning_again(
        self, op: str, task: TaskOrId, delay: float | None
    ) -> Operation[DecodedTask]:
        """Make a task ready by ``snatch`` or ``restart``."""
        wait, _ = check_times(delay, None)
        to = states.WAITING if wait else states.READY
        return self.operations.change(op, _id(task), to, wait)


def _results_of(given: Sequence[TaskOrId]) -> dict[int, Any]:
    """The results of the tasks for which a result was asked, by their place."""
    return {
        place: task.result
        for place, task in enumerate(given)
        if isinstance(task, BaseTask) and task.record.result_ttl and task.result is not None
    }


def _id(task: TaskOrId) -> bytes:
    return task.id_bytes if isinstance(task, BaseTask) else encode_id(task)


def _state(given: str) -> TaskState:
    """One of the states that a task in the queue can be in. Raises ArgumentError."""
    try:
        state = states.named(given)
    except (KeyError, TypeError):
        state = states.VOID
    if state is states.VOID:
        known = ", ".join(f"{letter} ({word})" for letter, word in states.NAMES.items())
        raise ArgumentError(f"{given!r} is not a state; the states are {known}")
    return state
