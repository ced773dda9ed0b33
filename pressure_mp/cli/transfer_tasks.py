"""Carry tasks from one queue to another, or to a file: with their ids, data, priorities, tubes and
times, signed anew. Their history is not carried."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import click

from ..encoding.task_values import decode_id, encode_id
from ..engines.contract.queues import How
from ..engines.contract.task_records import LOST_DATA, TaskSettings
from ..engines.contract.tasks import UniqueKeys
from ..exceptions import TaskExists
from ..operations.task_queue import TASKS, DecodedTask
from ..states import BURIED, READY, WAITING
from .broker import Broker, Named
from .transfer import Carried, Translator, to_bytes, to_text

#: The states in which a task is carried. A buried task needs space only until it is buried.
_CARRIED = BURIED, READY, WAITING
#: Milliseconds for which no worker can take a task that is to be buried.
_HELD = 3_600_000


class OtherData(click.ClickException):
    """A task of that id is in the queue already, with other data."""

    def __init__(self, id: int | str, message: str) -> None:
        super().__init__(message)
        self.id = id


class CarriedTask(NamedTuple):
    """A task. ``delay`` is for how many milliseconds it still waits, and ``ttl`` for how many it is
    still ready, None for the queue's own time. A buried task is carried without its unique key,
    which another task may have."""

    id: int | str
    data: bytes
    state: str
    priority: float
    tube: str
    key: str
    delay: int
    ttl: int | None
    unique: str = ""

    @classmethod
    def of(cls, task: DecodedTask, now: int) -> CarriedTask:
        """Make it of a task in a queue, at the broker's time ``now``."""
        id, record, data = task
        if data is LOST_DATA:
            raise click.ClickException(
                f"the data of task {decode_id(id)!r} are missing: the server or another program "
                "removed them; drop the task first"
            )
        left = max(record.due - now, 1) if record.due else 0
        delay = _HELD if record.state == BURIED else left if record.state == WAITING else 0
        ttl = left if record.state == READY and left else None
        where = record.priority, record.tube, record.key
        unique = "" if record.state == BURIED else record.unique
        return cls(decode_id(id), data, str(record.state), *where, delay, ttl, unique)

    def as_json(self) -> dict[str, Any]:
        found = self._asdict()
        return {"item": to_text(found.pop("data")), **found}

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> CarriedTask:
        fields = dict(value)
        return cls(data=to_bytes(fields.pop("item")), **fields)


def carry_all(queue: Named) -> Iterator[CarriedTask]:
    """Iterate over the buried, the ready and the waiting tasks, each in the order of the next
    takes; they stay."""
    stats = queue.run(queue.tasks.stats())
    for state in _CARRIED:
        for task in queue.run(queue.tasks.list(state, "", stats.counts[state] or 1)):
            yield CarriedTask.of(task, round(stats.now * 1000))


def settings_of(queue: Named) -> dict[str, Any]:
    return {"settings": asdict(queue.run(queue.tasks.recorded()))}


def open_target(broker: Broker, name: str, discipline: str, settings: Mapping[str, Any]) -> Named:
    """Open the queue to put tasks into, and create it if it is not there."""
    if not broker.exists(name):
        queue = broker.named(name, TASKS)
        queue.run(queue.tasks.open(How.CREATE, TaskSettings(**settings["settings"])))
    target = broker.find(name)
    target.tasks.settings = target.run(target.tasks.recorded())
    return target


class Loader:
    """Puts tasks into a queue, and counts them. A task that is there already, with the same data,
    stays as it is: so an interrupted load can be done again."""

    def __init__(self, target: Named, translator: Translator) -> None:
        self._target = target
        self._translator = translator
        self.number = 0

    def load_all(self, tasks: Iterable[CarriedTask]) -> None:
        for _, some in itertools.groupby(tasks, lambda task: task[2:-1]):
            self.load([*some])

    def load(self, tasks: list[CarriedTask]) -> None:
        """Put tasks that differ only in their id, their data and their unique key. Waits for
        space."""
        operations, first = self._target.tasks, tasks[0]
        if len(tasks) > 1 and first.state == BURIED:
            for task in tasks:
                self.load([task])
            return
        data = [self._translate(task) for task in tasks]
        options = (first.delay, first.ttl, first.priority, first.tube, 0, "", first.key)
        keys = [task.unique for task in tasks]
        unique = UniqueKeys(keys, "error") if any(keys) else None
        ids = [task.id for task in tasks]
        try:
            self._target.run(operations.put_many(data, ids, options, unique))
        except TaskExists as error:
            if error.task_id != first.id and len(tasks) == 1:  # another task has its unique key
                self.load([first._replace(unique="")])
                return
            if len(tasks) > 1:
                for task in tasks:  # the tasks put now are in the queue as well
                    self.load([task])
                return
            self._check_same(error, first, data[0])
        if first.state == BURIED:
            self._bury(first)
        self.number += len(tasks)

    def _translate(self, task: CarriedTask) -> bytes:
        translated = self._translator.translate(Carried(task.data))
        assert isinstance(translated, bytes)  # a task has no content elsewhere
        return translated

    def _check_same(self, error: TaskExists, task: CarriedTask, data: bytes) -> None:
        there = self._target.run(self._target.tasks.peek(encode_id(task.id)))
        if there.data != data:
            raise OtherData(task.id, f"{error}, and its data are not the same") from error

    def _bury(self, task: CarriedTask) -> None:
        operations, id = self._target.tasks, encode_id(task.id)
        if self._target.run(operations.peek(id)).record.state != BURIED:
            self._target.run(operations.change("switch", id, str(BURIED)))

    def take_out(self, task: CarriedTask) -> None:
        """Remove a task that was put, and must not be there."""
        if self._target.run(self._target.tasks.remove_from(encode_id(task.id), "".join(_CARRIED))):
            self.number -= 1


def move_all(queue: Named, loader: Loader, limit: int | None) -> None:
    """Move the tasks, at most ``limit``: each leaves its queue when it is in the other one. A task
    that a worker takes meanwhile stays where it is."""
    for task in itertools.islice(carry_all(queue), limit):
        loader.load([task])
        if not queue.run(queue.tasks.remove_from(encode_id(task.id), task.state)):
            loader.take_out(task)
