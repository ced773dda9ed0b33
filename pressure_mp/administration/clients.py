"""Who uses a queue, as far as the broker knows, and what it waits for."""

from __future__ import annotations

from typing import Any

from ..identity.processes import incarnation
from ..operations.diagnosis import Diagnosis
from ..operations.task_diagnosis import TaskDiagnosis
from .place import Named


def diagnose(queue: Named) -> Diagnosis | TaskDiagnosis:
    """What a queue waits for, of whatever kind it is."""
    if queue.has_tasks:
        return queue.run(queue.tasks.why_blocked(incarnation()))
    return queue.run(queue.items.why_blocked())


def known_clients(found: Diagnosis | TaskDiagnosis) -> list[dict[str, Any]]:
    """Those who put, get, or have tasks: role, id, host and pid where the id tells them, whether it
    is alive, for how many seconds it has waited, how many tasks it has."""
    return _of_items(found) if isinstance(found, Diagnosis) else _of_tasks(found)


def _of_tasks(found: TaskDiagnosis) -> list[dict[str, Any]]:
    return [
        {"role": "worker", **_peer(taker.peer), "tasks": taker.tasks, "lease_left": taker.left}
        for taker in found.takers
    ]


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
    return list(rows.values())


def _peer(peer: Any) -> dict[str, Any]:
    return {"id": peer.id, "host": peer.host, "pid": peer.pid, "alive": peer.alive}
