"""Find the processes that use queues, and the queues that lead to further queues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..administration.broker import Broker
from ..administration.clients import diagnose, known_clients
from ..administration.rates import Key, QueueRates
from ..exceptions import PressureError

#: The most queues whose clients are asked for, the busiest first.
MOST_QUEUES = 100


@dataclass
class Use:
    """The use of a queue by a process: its role, for how many seconds it has waited, how many tasks
    it has. ``worker`` is what is known of a worker, as :func:`known_clients` has it."""

    queue: Key
    role: str
    waited: float | None = None
    tasks: int = 0
    worker: dict[str, Any] | None = None


@dataclass
class Worker:
    """The known facts of a process. ``alive`` is None where that cannot be known."""

    id: str
    host: str | None
    pid: int | None
    alive: bool | None
    uses: list[Use] = field(default_factory=list)


@dataclass(frozen=True)
class Survey:
    """The processes, the sentence of each queue that was asked, and the queues that the consumers
    of each queue put into."""

    workers: list[Worker]
    sentences: dict[Key, str]
    leads_to: dict[Key, list[Key]]
    #: How many queues were not asked.
    left_out: int


def survey(broker: Broker, queues: Iterable[QueueRates]) -> Survey:
    """Ask for the clients of the queues. A queue that is gone, or cannot be asked, is left out."""
    in_use = sorted(queues, key=_business, reverse=True)
    workers: dict[str, Worker] = {}
    sentences: dict[Key, str] = {}
    for rates in in_use[:MOST_QUEUES]:
        key = rates.queue.name, rates.queue.discipline
        try:
            found = diagnose(broker.named(*key))
        except PressureError:
            continue
        sentences[key] = found.sentence
        for row in known_clients(found):
            _add(workers, key, row)
    return Survey(
        sorted(
            workers.values(), key=lambda one: (one.alive is False, one.host or one.id, one.pid or 0)
        ),
        sentences,
        _ways(workers.values()),
        max(len(in_use) - MOST_QUEUES, 0),
    )


def _business(rates: QueueRates) -> tuple[float, ...]:
    queue = rates.queue
    return (
        queue.putting + queue.getting + queue.in_flight,
        rates.puts + rates.gets,
        queue.length,
    )


def _add(workers: dict[str, Worker], queue: Key, row: dict[str, Any]) -> None:
    """Note a row of :func:`known_clients`. Threads of one process that use items are one use."""
    host, pid, id = row["host"], row["pid"], str(row["id"])
    name = id if host is None else f"{host}:{pid}"
    worker = workers.get(name)
    if worker is None:
        worker = workers[name] = Worker(id, host, pid, row["alive"])
    if row["role"] == "worker":
        worker.uses.append(Use(queue, "worker", None, row["tasks"], row))
        return
    use = next((one for one in worker.uses if (one.queue, one.role) == (queue, row["role"])), None)
    if use is None:
        use = Use(queue, row["role"])
        worker.uses.append(use)
    waited = row.get("waited")
    if waited is not None:
        use.waited = max(waited, use.waited or 0.0)


def _ways(workers: Iterable[Worker]) -> dict[Key, list[Key]]:
    """Map each queue to the queues that its consumers put into."""
    found: dict[Key, dict[Key, None]] = {}
    for worker in workers:
        targets = [use.queue for use in worker.uses if use.role == "producer"]
        for use in worker.uses:
            if use.role != "producer":
                others = (one for one in targets if one != use.queue)
                found.setdefault(use.queue, {}).update(dict.fromkeys(others))
    return {queue: sorted(targets) for queue, targets in found.items() if targets}


def in_order(queues: Iterable[Key], leads_to: dict[Key, list[Key]]) -> list[Key]:
    """Sort the queues: each behind the queues that lead to it, and directly behind one of these
    where that is possible; in a circle, by name."""
    left = sorted(set(queues))
    found: list[Key] = []
    while left:
        targets = {target for one in left for target in leads_to.get(one, ())}
        free = [one for one in left if one not in targets] or left
        next_ones = leads_to.get(found[-1], []) if found else []
        found.append(next((one for one in free if one in next_ones), free[0]))
        left.remove(found[-1])
    return found
