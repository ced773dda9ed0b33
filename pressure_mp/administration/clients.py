"""Who uses a queue, as far as the broker knows."""

from __future__ import annotations

from typing import Any

from ..identity.processes import incarnation
from .place import Named


def known_clients(queue: Named) -> list[dict[str, Any]]:
    """Those who put, get, or have tasks: role, id, host and pid where the id tells them, whether it
    is alive, for how many seconds it has waited, how many tasks it has."""
    return _of_tasks(queue) if queue.has_tasks else _of_items(queue)


def _of_tasks(queue: Named) -> list[dict[str, Any]]:
    found = queue.run(queue.tasks.why_blocked(incarnation()))
    return [
        {"role": "worker", **_peer(taker.peer), "tasks": taker.tasks, "lease_left": taker.left}
        for taker in found.takers
    ]


def _of_items(queue: Named) -> list[dict[str, Any]]:
    found = queue.run(queue.items.why_blocked())
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
