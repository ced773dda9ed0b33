"""List the workers of a queue of tasks, each with its tasks: processes announce their workers, and
the broker knows which process has which task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..encoding.task_values import decode_id
from ..encoding.worker_texts import WorkerText, read_worker
from ..engines.contract.task_administration import TakerTexts
from ..engines.contract.task_records import StoredTask
from ..identity.processes import is_lost, state
from ..in_flight import CALLS_OF_ONE
from .diagnosis_sides import Peer, peer_of


class TaskAtWork(NamedTuple):
    """A task that a worker has: since when, in seconds since the epoch on the broker's clock; how
    often it was taken; and its tube, None if it has none."""

    id: int | str
    since: float
    deliveries: int
    tube: str | None


class TaskWorker(NamedTuple):
    """A worker of a queue of tasks: a call of ``run()``, or a worker process of an executor. Or it
    is a process that has tasks, and took them by itself: then ``concurrency``, ``since`` and
    ``version`` are None, and ``tubes`` is empty.

    ``process`` is its process; ``process.alive`` is None when it is not known whether that lives.
    ``number`` tells the workers of one process apart. ``concurrency`` is how many tasks the worker
    processes at a time, and ``tubes`` has the tubes of which it takes tasks; None stands for all
    tubes. ``since`` is when it began, in seconds since the epoch on the broker's clock, and
    ``version`` is its version of this package. ``lease_left`` is in how many seconds the lease of
    its process ends, None when that has ended. ``tasks`` are the tasks that it has, and ``late``
    has the ids of tasks whose ``ttr`` is over while their handlers go on here, 10 at most: these
    tasks are ready again, or another worker has them.
    """

    process: Peer
    number: int
    concurrency: int | None
    tubes: tuple[str | None, ...]
    since: float | None
    version: str | None
    lease_left: float | None
    tasks: tuple[TaskAtWork, ...]
    late: tuple[int | str, ...] = ()


Workers = list[TaskWorker]


def workers_of(found: TakerTexts, taken: Iterable[StoredTask]) -> Workers:
    """Return the workers whose processes live, as far as is known, and the processes that have
    others of the ``taken`` tasks."""
    tasks: dict[tuple[str, int], list[TaskAtWork]] = {}
    for id, record, _ in taken:
        one = TaskAtWork(decode_id(id), record.since / 1000, record.deliveries, record.tube or None)
        tasks.setdefault((record.owner, record.call // CALLS_OF_ONE), []).append(one)
    workers: Workers = []
    for owner, texts in found.workers.items():
        seen, until = state(owner), found.leases.get(owner, 0)
        if is_lost(seen, until, found.now):
            continue
        for told in sorted(filter(None, map(read_worker, texts))):
            its = tasks.pop((owner, told.number), ())
            workers.append(_worker(owner, found, told, its))
    rest: dict[str, list[TaskAtWork]] = {}
    for (owner, _), its in tasks.items():
        rest.setdefault(owner, []).extend(its)
    return workers + [_worker(owner, found, None, its) for owner, its in rest.items()]


def _worker(
    owner: str, found: TakerTexts, told: WorkerText | None, tasks: Sequence[TaskAtWork]
) -> TaskWorker:
    until = found.leases.get(owner, 0)
    return TaskWorker(
        process=peer_of(owner, state(owner)),
        number=told.number if told else 0,
        concurrency=told.concurrency if told else None,
        tubes=tuple(tube or None for tube in told.tubes) if told else (),
        since=told.since / 1000 if told else None,
        version=told.version if told else None,
        lease_left=(until - found.now) / 1000 if until >= found.now else None,
        tasks=tuple(sorted(tasks, key=lambda task: task.since)),
        late=told.late if told else (),
    )
