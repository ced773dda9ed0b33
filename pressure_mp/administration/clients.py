"""The clients of a queue that the broker knows, and what the queue waits for."""

from __future__ import annotations

from typing import Any

from ..operations.diagnosis import Diagnosis
from ..operations.diagnosis_sides import Peer
from ..operations.task_diagnosis import TaskDiagnosis
from ..operations.task_workers import TaskAtWork
from .broker import Named


def diagnose(queue: Named) -> Diagnosis | TaskDiagnosis:
    if queue.has_tasks:
        return queue.run(queue.tasks.why_blocked())
    return queue.run(queue.items.why_blocked())


def known_clients(found: Diagnosis | TaskDiagnosis) -> list[dict[str, Any]]:
    """Return the clients that put, get, or have tasks: role, id, host and pid where the id tells
    them, whether it is alive, for how many seconds it has waited, how many tasks it has. A consumer
    that may have items in flight has ``in_flight``: how many, None if others may have some of
    them. A worker of a queue of tasks has what :class:`pressure_mp.TaskWorker` says; ``works`` is
    for how many seconds, and ``at`` has its tasks, with the seconds for which it has had each."""
    return _of_items(found) if isinstance(found, Diagnosis) else _of_tasks(found)


def _of_tasks(found: TaskDiagnosis) -> list[dict[str, Any]]:
    return [
        {
            "role": "worker",
            **_peer(worker.process),
            "number": worker.number,
            "concurrency": worker.concurrency,
            "tubes": worker.tubes,
            "works": _passed(worker.since, found.now),
            "version": worker.version,
            "lease_left": worker.lease_left,
            "tasks": len(worker.tasks),
            "at": [_at(task, found.now) for task in worker.tasks],
            "late": worker.late,
        }
        for worker in found.workers
    ]


def _at(task: TaskAtWork, now: float) -> dict[str, Any]:
    had = {"id": task.id, "for": _passed(task.since, now)}
    return had | {"deliveries": task.deliveries, "tube": task.tube}


def _passed(since: float | None, now: float) -> float | None:
    return None if since is None else max(now - since, 0.0)


def _of_items(found: Diagnosis) -> list[dict[str, Any]]:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for side, others in ((found.put, found.get.partners), (found.get, found.put.partners)):
        for peer in others:
            rows[side.role, peer.id] = {"role": side.role, **_peer(peer)}
        for waiter in side.line:
            rows[side.role, waiter.peer.id] |= {"waited": waiter.waited}
        holder = side.holder
        if holder and holder.peer and holder.state == "waiting":
            rows[side.role, holder.peer.id] |= {"waited": holder.held}
    owners = found.in_flight.owners
    number = found.in_flight.number if len(owners) == 1 else None
    for one in owners:
        same = [row for (role, _), row in rows.items() if role == "consumer" and _is(row, one.peer)]
        new = {"role": "consumer", **_peer(one.peer)}
        row = same[0] if same else rows.setdefault(("consumer", one.peer.id), new)
        row |= {"in_flight": number, "lease_left": one.left}
    return list(rows.values())


def _is(row: dict[str, Any], peer: Peer) -> bool:
    return peer.pid is not None and (row["host"], row["pid"]) == (peer.host, peer.pid)


def _peer(peer: Peer) -> dict[str, Any]:
    return {"id": peer.id, "host": peer.host, "pid": peer.pid, "alive": peer.alive}
