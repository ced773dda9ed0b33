"""What producers, workers and administrators of a queue of tasks share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Generic

from . import takers
from .codec import Codec
from .effects import Operation
from .engines import registry
from .exceptions import ArgumentError
from .handles import Handle
from .operations.administration import TaskAdministrationOperations
from .operations.tasks import NO_EDIT, Changed, Edit, Raw
from .records import encode_id
from .takers import Takers
from .task import UNCHANGED, Data, Task
from .task_settings import TaskSettings, milliseconds


class TaskHandle(Handle, Generic[Data]):
    """A handle to a queue of tasks."""

    _operations: TaskAdministrationOperations
    _codec: Codec[Data]
    _settings: TaskSettings

    def _make_operations(self, lease: int) -> TaskAdministrationOperations:
        return TaskAdministrationOperations(self._name, lease)

    @property
    def _here(self) -> Takers:
        """This process as a taker."""
        if not isinstance(self._presence, Takers):
            engine = registry.engine(self._address)
            self._presence = takers.of(engine, self._name, int(self._lease * 1000))
        return self._presence

    def _edit(
        self,
        task: Task[Data] | int | str,
        update: Any,
        make: Callable[[Edit, bool], Operation[Raw]],
    ) -> Task[Data]:
        """Run an operation that may change the data: to ``update``, or to what it makes of it."""
        whole = not isinstance(task, Task)
        while True:
            if update is UNCHANGED:
                edit = NO_EDIT
            elif not callable(update):
                edit = Edit(True, self._codec.encode_whole(update))
            elif isinstance(task, Task):
                edit = Edit(True, self._codec.encode_whole(update(task.data)))
            else:
                raw = self._run(self._operations.peek(encode_id(task)))
                digest = hashlib.sha1(raw.data, usedforsecurity=False).hexdigest()
                data = self._codec.encode_whole(update(self._codec.decode(raw.data)))
                edit = Edit(True, data, digest)
            try:
                raw = self._run(make(edit, whole))
            except Changed:
                continue
            if whole:
                return self._task(raw)
            assert isinstance(task, Task)
            now = self._codec.decode(edit.data) if edit.changes else task.data
            return Task(self, task.key, now, raw.record)

    def _task(self, raw: Raw) -> Task[Data]:
        """A task as its user sees it. Raises DecodingError, AuthenticationError."""
        return Task(self, raw.id, self._codec.decode(raw.data), raw.record)


def check_times(delay: float | None, ttl: float | None) -> tuple[int, int | None]:
    """A delay and a ttl in milliseconds: 0 for no delay, None for the queue's own ttl.

    Raises ArgumentError when both are given, ArgumentTypeError.
    """
    if delay and ttl is not None:
        raise ArgumentError(
            "delay and ttl exclude each other: the time to live begins when it is ready"
        )
    life = None if ttl is None else milliseconds("ttl", ttl, least=0.001)
    return milliseconds("delay", delay), life
