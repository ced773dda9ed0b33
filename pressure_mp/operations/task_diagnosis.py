"""Diagnose what a queue of tasks waits for, and which processes have its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from .. import states
from ..encoding.reports import read
from ..encoding.task_values import decode_id
from ..engines.contract.brokers import split_pauses
from ..engines.contract.task_administration import TakerTexts, TaskCounts
from ..engines.contract.task_records import NOT_IN_TIME, StoredTask
from ..identity.processes import is_lost, state
from .diagnosis_sides import Peer, peer_of
from .phrases import are, some
from .task_stats import Counts, RateLimit, count, queued, rate_limits
from .task_workers import TaskWorker, workers_of


class Taker(NamedTuple):
    """A process that has taken ``tasks`` of the tasks that were looked at. ``left`` is in how many
    seconds its lease ends, None when it has no lease any more. ``lost`` is True when its tasks are
    ready again as soon as a worker waits: it has ended; or its lease has, and it is not seen to
    run."""

    peer: Peer
    tasks: int
    left: float | None
    lost: bool


class FullKey(NamedTuple):
    """A key of which the most tasks are taken that may be, ``taken``. Of the tasks that were looked
    at, ``ready`` wait until one of these is done. ``tube`` is their tube, empty for none."""

    key: str
    tube: str
    ready: int
    taken: int

    def __str__(self) -> str:
        where = f" in tube {self.tube!r}" if self.tube else ""
        return f"of key {self.key!r}{where} {are(self.taken, 'task')} taken, and {self.ready} wait"


class LateTask(NamedTuple):
    """A task whose ``ttr`` was over before its worker had processed it. ``process`` is the process
    in which its handler goes on, None when no worker says that it does."""

    id: int | str
    process: Peer | None


class TaskDiagnosis(NamedTuple):
    """What a take on a queue of tasks would wait for at one moment, and which processes have tasks.

    ``str()`` says it in words. ``counts`` has the number of tasks in each state. ``takers`` are the
    processes that have taken tasks, and ``workers`` is what ``workers()`` of the queue returns.
    ``now`` is the time, in seconds since the epoch on the broker's clock. ``next_due`` is in how
    many seconds the next waiting task will be ready, None when no task waits. ``full_keys`` are the
    keys of which ``per_key`` tasks are taken, so that no worker gets another one now; ``all_wait``
    is True when all ready tasks that were examined have such keys. ``late`` has the tasks whose
    ``ttr`` was over before they were processed, of the tasks that were examined, and of those that
    workers name; ``too_slow`` says it in words. ``paused`` says whether the queue is paused, and
    ``paused_tubes`` has the tubes that are paused by themselves, with the number of ready tasks in
    each. ``limits`` are the rate limits, and ``used_up`` the tubes that may have no delivery now
    because of theirs, in the same way. ``maxsize`` is the bound, and ``putting`` how many clients
    are known to wait for space. ``incomplete`` is True when fewer tasks are there than are
    counted: the server, or another program, removed keys of the queue.
    """

    queue: str
    counts: Counts
    closed: bool
    takers: tuple[Taker, ...]
    workers: tuple[TaskWorker, ...]
    now: float
    next_due: float | None
    per_key: int
    full_keys: tuple[FullKey, ...]
    all_wait: bool
    late: tuple[LateTask, ...]
    paused: bool
    paused_tubes: dict[str, int]
    limits: tuple[RateLimit, ...]
    used_up: dict[str, int]
    maxsize: int
    putting: int
    incomplete: bool = False

    def __str__(self) -> str:
        counted = ", ".join(f"{number} {state.word}" for state, number in self.counts.items())
        lines = [self.sentence, f"queue {self.queue!r}: {counted}"]
        lines += self._fullness()
        for taker in self.takers:
            lease = "no lease" if taker.left is None else f"its lease ends in {taker.left:.1f} s"
            lines.append(f"{taker.peer} has {some(taker.tasks, 'task')}; {lease}")
        for tube, ready in self.paused_tubes.items():
            lines.append(f"tube {tube!r} is paused, with {some(ready, 'ready task')}")
        lines += [f"limit: {limit}" for limit in self.limits]
        lines += [f"{key}: per_key={self.per_key}" for key in self.full_keys]
        if self.late:
            lines.append(self.too_slow)
        return "\n".join(lines)

    def _fullness(self) -> list[str]:
        there = queued(self.counts)
        if not 0 < self.maxsize <= there:
            return []
        waits = f", and {some(self.putting, 'put')} wait{'s' * (self.putting == 1)}"
        return [
            f"it is full: {there} of {self.maxsize} tasks are ready or waiting"
            + waits * bool(self.putting)
        ]

    @property
    def sentence(self) -> str:
        """What is in the way, and what to do, in one sentence."""
        if self.incomplete:
            return (
                "A key of the queue is missing, which the server or another program removed: "
                "`pressure-mp doctor` says what to do."
            )
        ready, taken = self.counts[states.READY], self.counts[states.TAKEN]
        waiting, buried = self.counts[states.WAITING], self.counts[states.BURIED]
        if self.paused:
            return (
                f"The queue is paused, with {some(ready, 'ready task')}: `pressure-mp resume "
                f"{self.queue}` lets workers take them."
            )
        if ready and ready == sum(self.paused_tubes.values()):
            tube = max(self.paused_tubes, key=self.paused_tubes.__getitem__)
            return (
                f"No task can be taken: {are(ready, 'task')} ready, in tubes that are paused; see "
                f"`pressure-mp resume {self.queue} --tube {tube}`."
            )
        limit = self._limit_in_the_way
        if ready and limit is not None:
            return (
                f"No task can be taken: {are(ready, 'task')} ready, but a limit is used up: "
                f"{limit}. `pressure-mp limit {self.queue}` changes it."
            )
        if ready and not any(taker.tasks for taker in self.takers):
            if self.workers:
                idle = some(len(self.workers), "worker")
                return (
                    f"{are(ready, 'task')} ready, and {idle} took none yet: `pressure-mp workers "
                    f"{self.queue}` shows the tubes of each."
                )
            keys = next((limit for limit in self.limits if limit.each_key), None)
            or_wait = "" if keys is None else f", unless their keys had their {keys}"
            return f"{are(ready, 'task')} ready, and no worker has any: start a worker{or_wait}."
        if ready and self.all_wait:
            others = len(self.full_keys) - 1
            more = f", and the same holds for {others} more" if others else ""
            return (
                f"No task can be taken: {are(ready, 'task')} ready, but {self.full_keys[0]} until "
                f"one of these is done (per_key={self.per_key}){more}; {self._takers_named()}."
            )
        if ready:
            return f"{are(ready, 'task')} ready, and {self._takers_named()}."
        if taken and not self._working:
            return (
                f"No task is ready: {are(taken, 'task')} taken by processes that {self._ended}, "
                "and ready again as soon as a worker waits: start a worker."
            )
        if taken:
            return f"No task is ready: {are(taken, 'task')} taken, and {self._takers_named()}."
        if self.next_due is not None:
            return (
                f"No task is ready: {are(waiting, 'task')} waiting, the next for "
                f"{self.next_due:.1f} s more."
            )
        if buried:
            return (
                f"No task is ready: {are(buried, 'task')} buried, after errors; see `pressure-mp "
                f"tasks {self.queue} --state B`, correct what failed, then `pressure-mp requeue "
                f"{self.queue} --all`."
            )
        if self.closed:
            return "The queue is shut down, with no task left to do."
        return "The queue has no task to do: put one."

    @property
    def _limit_in_the_way(self) -> RateLimit | None:
        """The limit that keeps workers from all ready tasks, if one does."""
        used_up = [limit for limit in self.limits if limit.left]
        if used_up and used_up[0].tube is None:
            return used_up[0]
        kept = self.counts[states.READY] == sum((self.paused_tubes | self.used_up).values())
        return min(used_up, key=lambda limit: limit.left) if used_up and kept else None

    @property
    def too_slow(self) -> str:
        """A sentence about the tasks whose ttr was over, and what to do; empty if there are
        none."""
        if not self.late:
            return ""
        first = next((task for task in self.late if task.process), self.late[0])
        whose = f", whose handler goes on in {first.process.name}" if first.process else ""
        which = f"task {first.id!r}{whose}"
        if len(self.late) > 1:
            which = f"{len(self.late)} tasks, such as {which},"
        elif whose:
            which += ","
        return (
            f"The ttr of {which} was over before the worker was done: give such tasks a longer "
            "ttr, or call touch() before it is over."
        )

    @property
    def _working(self) -> list[Taker]:
        return [taker for taker in self.takers if taker.tasks and not taker.lost]

    @property
    def _ended(self) -> str:
        if all(taker.peer.alive is False for taker in self.takers if taker.tasks):
            return "have ended"
        return "have ended or let their leases end"

    def _takers_named(self) -> str:
        live = self._working
        if not live:
            return f"all processes that have some {self._ended}: start a worker"
        name = live[0].peer.name
        if len(live) == 1:
            return f"{name} is at work"
        return f"{len(live)} processes are at work, such as {name}"


def diagnose_tasks(
    queue: str,
    counts: TaskCounts,
    takers: TakerTexts,
    taken: Sequence[StoredTask],
    dues: Sequence[int],
    ready: Sequence[StoredTask],
    per_key: int,
) -> TaskDiagnosis:
    """Make the diagnosis of what an engine saw of a queue of tasks."""
    numbers: dict[str, int] = dict.fromkeys(takers.leases, 0)
    for task in taken:
        numbers[task.record.owner] = numbers.get(task.record.owner, 0) + 1
    found = []
    for owner, number in numbers.items():
        until, now, seen = takers.leases.get(owner, -1), takers.now, state(owner)
        left = (until - now) / 1000 if until >= now else None
        if number or left is not None:
            found.append(Taker(peer_of(owner, seen), number, left, is_lost(seen, until, now)))
    is_paused, paused_tubes = split_pauses(counts.paused)
    full = _full_keys(taken, ready, per_key) if per_key else ()
    limits = rate_limits(counts)
    used_up = [limit.tube for limit in limits if limit.tube is not None and limit.left]
    workers = tuple(workers_of(takers, taken))
    return TaskDiagnosis(
        queue=queue,
        counts=count(counts.transitions),
        closed=counts.closed,
        takers=tuple(sorted(found, key=lambda taker: -taker.tasks)),
        workers=workers,
        now=takers.now / 1000,
        next_due=max(min(dues) - counts.now, 0) / 1000 if dues else None,
        per_key=per_key,
        full_keys=full,
        late=_late_tasks(workers, [*taken, *ready]),
        all_wait=bool(full) and sum(key.ready for key in full) == len(ready),
        paused=is_paused,
        paused_tubes=_ready_in(paused_tubes, counts),
        limits=limits,
        used_up=_ready_in(used_up, counts),
        maxsize=counts.maxsize,
        putting=counts.putting,
    )


def _ready_in(tubes: Sequence[str], counts: TaskCounts) -> dict[str, int]:
    return {tube: count(counts.tubes.get(tube, {}))[states.READY] for tube in tubes}


def _late_tasks(workers: Sequence[TaskWorker], seen: Sequence[StoredTask]) -> tuple[LateTask, ...]:
    """Return the tasks that workers say are late; and those of the tasks that were seen whose ttr
    was over when they were taken last."""
    said = {id: LateTask(id, worker.process) for worker in workers for id in worker.late}
    over = [decode_id(task.id) for task in seen if read(task.record.report).error == NOT_IN_TIME]
    return tuple({**{id: LateTask(id, None) for id in over}, **said}.values())


def _full_keys(
    taken: Sequence[StoredTask], ready: Sequence[StoredTask], per_key: int
) -> tuple[FullKey, ...]:
    """Return the keys of which no more tasks may be taken, those with the most ready tasks
    first."""
    has = Counter((task.record.key, task.record.tube) for task in taken if task.record.key)
    wait = Counter((task.record.key, task.record.tube) for task in ready)
    full = [group for group, number in has.items() if number >= per_key and wait[group]]
    found = [FullKey(key, tube, wait[key, tube], has[key, tube]) for key, tube in full]
    return tuple(sorted(found, key=lambda key: -key.ready))
