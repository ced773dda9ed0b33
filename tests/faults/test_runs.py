"""Processes that handle tasks by ``run`` are killed, stopped for longer than their lease, and lose
their server: no task is lost, and none is handled again but what a killed or stopped one had."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from faults import histories
from faults.killer import LEASE, Killer, Leases
from faults.tasks import results_of
from faults.worked_off import end_producers, processed, restart, work_off

from pressure_mp import TaskQueue

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.parametrize("run_in", ["threads", "asyncio"]),
]

PROCESSES, CONCURRENCY = 3, 8
PAUSE = 0.2  # seconds between two strikes, on average


def check(queue, nursery, killed, figures):
    """Each task was handled to its end; again only if a process in ``killed`` had it before."""
    handled, puts = defaultdict(list), set()
    for one in histories.read(nursery.directory):
        if one.kind == "handle":
            handled[one.item].append(one)
        elif one.kind == "put" and one.outcome == histories.DONE:
            puts.add(one.item)
    for handlings in handled.values():
        assert sum(one.client not in killed for one in handlings) <= 1, handlings
    again = sum(map(len, handled.values())) - len(handled)
    lost = [
        item for item in puts if not any(one.outcome == histories.DONE for one in handled[item])
    ]
    stats = queue.stats()
    figures.note(tasks=len(puts), again=again, lost=len(lost))
    assert lost == []
    assert stats.transitions["T-X"] == stats.transitions["X-R"] + stats.transitions.get("X-W", 0)
    for item, result in results_of(queue, puts).items():
        ended = [one.client for one in handled[item] if one.outcome == histories.DONE]
        living = [client for client in ended if client not in killed]
        assert result in (living or ended), handled[item]
    return again


def arguments(server, name, seed, run_in, **options):
    """Of clients that put tasks, and of clients that handle tasks."""
    common = {"name": name, "options": {"url": server.url, **options}, "seed": seed}
    return {
        "run_tasks": {**common, "run_in": run_in, "concurrency": CONCURRENCY},
        "put_tasks": {**common, "items": 10**9},
    }


def test_no_task_of_a_run_is_lost_when_its_process_is_killed(
    server, name, nursery, seed, long, pace, figures, run_in
):
    tasks, strikes = (50_000 * pace, 1_000) if long else (500, 30)
    queue = TaskQueue.create(name, url=server.url, lease=LEASE)
    population = arguments(server, name, seed, run_in, lease=LEASE)
    leases = Leases(server, name, "tasks")
    killer = Killer(nursery, population, PROCESSES, random.Random(seed), leases, PAUSE)
    killer.run(lambda: processed(queue), tasks, strikes, 600 if long else 300)
    end_producers(nursery)
    work_off(queue, nursery)
    figures.note(**killer.made)
    check(queue, nursery, killer.killed, figures)
    queue.delete()


def test_a_run_goes_on_when_its_server_is_killed_and_handles_no_task_twice(
    durable, name, nursery, seed, long, figures, run_in
):
    queue = TaskQueue.create(name, url=durable.url)
    population = arguments(durable, name, seed, run_in, reconnect=60)
    for role, given in population.items():
        for _ in range(PROCESSES):
            nursery.start(role, **given)
    restart(durable, queue, nursery, 20 if long else 3, random.Random(seed))
    end_producers(nursery)
    work_off(queue, nursery)
    assert check(queue, nursery, set(), figures) == 0
    queue.delete()
