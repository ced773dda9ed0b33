"""The queue of tasks of one name, in a store."""

from __future__ import annotations

from typing import Any

from ..contract.task_records import Record, TaskSettings
from ..requests import task_queue
from ..requests.kinds import Counts
from ..requests.life import Life, Living
from ..requests.limits import Limit
from ..requests.ready_tasks import ReadyTasks
from ..requests.results import Results
from .line import StoredEnds, StoredTaskLine
from .records import GROUP, HOLDER, INBOX, JSON, KEPT, NOTICE, RAW, Kind, dump, fields, load
from .space import NamedQueue, Space, StoredPlace
from .unit import Names, StoredLeases, StoredSet, Table, Unit, contents

#: The fields of the queue that are no tables, beside its options, its pauses and its limits.
_HEAD = "created", "closed", "seq", "counter"
#: These pauses; the limits, and the limits of each key.
Restraints = tuple[dict[str, bool], dict[str, Limit], dict[str, tuple[int, int]]]


class StoredLiving(Living):
    """A task whose data are read when they are asked for."""

    def __init__(self, id: bytes, record: Record, seq: int, inboxes: list[str], datas: Any) -> None:
        self.id, self.record, self.seq, self.inboxes = id, record, seq, inboxes
        self._datas = datas

    @property
    def data(self) -> bytes:
        found: bytes = self._datas[self.id]
        return found

    @data.setter
    def data(self, data: bytes) -> None:
        self._datas[self.id] = data


class StoredLivings(Table[bytes, Living]):
    """The tasks of a queue; their data are beside them, and are not written when a task changes."""

    def __init__(self, unit: Unit, prefix: bytes) -> None:
        super().__init__(unit, prefix + b"r", Kind(_dump_task, self._load_task))
        self._datas: Table[bytes, bytes] = Table(unit, prefix + b"d", RAW)

    def _load_task(self, raw: bytes) -> Living:
        (record, seq, inboxes), (id,) = load(raw)
        return StoredLiving(id, Record(*record), seq, inboxes, self._datas)

    def __setitem__(self, id: bytes, task: Living) -> None:
        self._datas.insert(id, task.data)
        super().__setitem__(id, task)

    def __delitem__(self, id: bytes) -> None:
        task = self[id]
        if isinstance(task, StoredLiving):
            task._datas = {id: task.data}  # a reply may have them
        super().__delitem__(id)
        self._datas.drop(id)


def _dump_task(task: Living) -> bytes:
    return dump([task.record, task.seq, task.inboxes], task.id)


class StoredTaskPlace(StoredPlace):
    """The place of a queue of tasks."""

    _kind = "t"
    state: Life | None

    def __init__(self, space: Space, unit: Unit, name: str) -> None:
        super().__init__(space, unit, name)
        self.line = StoredTaskLine(self.waiters)
        self._raw = unit.txn.get(self.prefix + b"h")
        if self._raw is not None:
            (settings, pauses, limits, key_limits, *head), _ = load(self._raw)
            made = {tube: Limit(*limit) for tube, limit in limits.items()}
            self.state = self._make(TaskSettings(*settings), (pauses, made, key_limits), head)

    def _make(self, settings: TaskSettings, restraints: Restraints, head: list[Any]) -> Life:
        unit, prefix = self.unit, self.prefix

        def tuples(name: bytes, number: int | None = None) -> StoredSet[Any]:
            return StoredSet(unit, prefix + name, number)

        workers: Table[str, list[str]] = Table(unit, prefix + b"v", JSON)
        ways: Table[str, int] = Table(unit, prefix + b"n", JSON)
        results = Results(
            kept=Table(unit, prefix + b"zk", KEPT),
            inboxes=Table(unit, prefix + b"zi", INBOX),
            notices=Table(unit, prefix + b"zn", NOTICE, False),
            ends=tuples(b"ze"),
            contents=contents(unit, prefix, self.clock),
            holders=Table(unit, prefix + b"o", HOLDER),
        )
        tasks = StoredLivings(unit, prefix + b"k")
        groups: Table[Any, Any] = Table(unit, prefix + b"g", GROUP, False)
        line, behind, looks = tuples(b"l", 1), tuples(b"b", 2), tuples(b"j")
        most = settings.per_key
        ready = ReadyTasks(tasks, most, line, behind, groups, *restraints, looks)
        return Life(
            settings=settings,
            now=self.clock(),
            users=Names(unit, prefix + b"u"),
            tasks=tasks,
            ways=Counts(ways),
            presence=StoredLeases(unit, prefix + b"p"),
            workers=workers,
            ends=StoredEnds(unit, prefix + b"a"),
            putters=self.line.putters,
            results=results,
            ready=ready,
            places=tuples(b"s"),
            due=tuples(b"d"),
            returning=tuples(b"e"),
            **dict(zip(_HEAD, head, strict=False)),
        )

    def create(self, settings: TaskSettings) -> Life:
        self.state = self._make(settings, ({}, {}, {}), [self.clock()])
        self._note_name()
        return self.state

    def delete(self) -> None:
        self._raw = None
        super().delete()

    def _flush(self) -> None:
        if self.state is not None:
            values = [getattr(self.state, name) for name in _HEAD]
            ready = self.state.ready
            limits = {tube: fields(limit) for tube, limit in ready.limits.items()}
            settings = fields(self.state.settings)
            raw = dump([settings, ready.pauses, limits, ready.key_limits, *values])
            if raw != self._raw:
                self.unit.txn.set(self.prefix + b"h", raw)


class StoredTasks(NamedQueue):
    """The queue of tasks of one name."""

    _rules, _make = task_queue, StoredTaskPlace
