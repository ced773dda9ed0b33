"""An attachment to a queue of tasks, and what its verbs are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import states
from ..background import takers
from ..background.takers import Takers
from ..effects import Operation
from ..encoding.codec import Codec
from ..encoding.task_values import (
    encode_id,
)
from ..engines import registry
from ..engines.contract.session import Binding
from ..engines.contract.task_records import HeldTask, TaskSettings
from ..engines.contract.tasks import Processed
from ..exceptions import ArgumentError, PressureError
from ..operations.task_settling import Subject
from ..operations.task_stats import TaskStats
from ..operations.tasks import TaskOperations
from ..states import TaskState
from .attachment import Attachment, Traits
from .base_task import BaseTask, TaskOrId

#: A task of either world.
AnyTask = TypeVar("AnyTask")


class TaskAttachment(Attachment):
    """An attachment to a queue of tasks."""

    operations: TaskOperations
    codec: Codec[Any]
    _settings: TaskSettings
    #: Makes ids, in a queue whose ids a callable makes.
    make_id: Callable[[], int | str] | None

    of_one_process = (*Attachment.of_one_process, "_stats")

    def begin(self, traits: Traits) -> None:
        super().begin(traits)
        self._stats: TaskStats | None = None
        if "_settings" in self.__dict__:  # it was unpickled
            self.equip()

    @property
    def settings(self) -> TaskSettings:
        """The settings of the queue, which a handle of threads opens for that. Raises ArgumentError
        for a handle of asyncio that is not open."""
        if self.opening is not None:
            if self.is_of_asyncio:
                raise ArgumentError(
                    f"queue {self.name!r} is not open yet: await open() before you read its "
                    "settings"
                )
            self.attach()
        return self._settings

    def learn(self, settings: TaskSettings) -> None:
        """Note the settings of the queue, which is open now."""
        self._settings = settings
        self.equip()

    def equip(self) -> None:
        """Give the operations what the handle knows."""
        self.operations.codec = self.codec
        self.operations.settings, self.operations.is_open = self._settings, True
        self.operations.make_id = self.make_id

    @property
    def here(self) -> Takers:
        """This process as a taker."""
        if self._presence is None:
            engine = registry.engine(self.address)
            self._presence = takers.of(engine, self.name, self.options.lease)
        found: Takers = self._presence
        return found

    def beside(self, name: str) -> tuple[Binding, Takers]:
        """Return the binding of another queue of tasks at this broker, and this process as its
        taker. Does no I/O."""
        engine, options = registry.engine(self.address), self.options
        there = engine.bind(name, self.operations.discipline, options)
        return there, takers.of(engine, name, options.lease)

    def subject(self, task: TaskOrId) -> Subject:
        """A task, with the number of the take by which this process has it."""
        if isinstance(task, BaseTask):
            record = task.record
            said = task.data, bool(record.result_ttl), record.report
            return Subject(task.id_bytes, record.call, True, *said)
        return Subject(*self.held(task))

    def held(self, task: TaskOrId) -> HeldTask:
        """A task's id, and the number of the take by which this process has it."""
        if isinstance(task, BaseTask):
            return task.id_bytes, task.record.call
        id = encode_id(task)
        return id, self.here.call_of(id)

    def acking(self, given: Sequence[TaskOrId]) -> Operation[dict[int, PressureError]]:
        """Acknowledge tasks. Returns the errors of the tasks that cannot be acknowledged, by their
        place."""
        helds = [self.held(task) for task in given]

        def become(place: int, processed: Processed) -> None:
            task = given[place]
            if isinstance(task, BaseTask):
                task.become_record(task.record.into(*processed))

        results = results_of(given)
        return (yield from self.operations.ack_many(helds, self.here, results, become))

    def acking_many(self, given: Sequence[TaskOrId]) -> Operation[None]:
        """Acknowledge tasks. The error of the first that cannot be says how many were."""
        problems = yield from self.acking(given)
        if problems:
            left = sorted(problems)
            first = problems[left[0]]
            first.accepted = len(given) - len(left)
            first.rest = [given[place] for place in left]
            raise first

    def counting(self) -> Operation[TaskStats]:
        """Count the tasks, and the changes since the last count through this handle."""
        now = yield from self.operations.stats()
        rates = now.rates_since(self._stats)
        self._stats = now
        return now.with_rates(rates)


def results_of(given: Sequence[TaskOrId]) -> dict[int, Any]:
    """The results of the tasks for which a result was asked, by their place."""
    return {
        place: task.result
        for place, task in enumerate(given)
        if isinstance(task, BaseTask) and task.record.result_ttl and task.result is not None
    }


def id_of(task: TaskOrId) -> bytes:
    """A task's id, as the broker has it. Raises ArgumentError, ArgumentTypeError."""
    return task.id_bytes if isinstance(task, BaseTask) else encode_id(task)


def state_of(given: str) -> TaskState:
    """One of the states that a task in the queue can be in. Raises ArgumentError."""
    try:
        state = states.named(given)
    except (KeyError, TypeError):
        state = states.VOID
    if state is states.VOID:
        known = ", ".join(f"{letter} ({word})" for letter, word in states.NAMES.items())
        raise ArgumentError(f"{given!r} is not a state; the states are {known}")
    return state
