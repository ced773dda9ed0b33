"""Workers that are killed and stopped, connections that break, a server that is killed: no task is
lost, and none is processed twice except tasks that were in hand."""

from __future__ import annotations

import random
import time

import pytest
from faults import clients, histories
from faults.killer import LEASE, Killer, Leases
from faults.proxy import Faults, Proxy
from faults.task_checker import Lives
from faults.tasks import results_of
from faults.worked_off import end_producers, processed, restart, work_off
from waiting import until

from pressure_mp import TaskQueue

pytestmark = pytest.mark.timeout(900)

PRODUCERS, WORKERS = 2, 4
PAUSE = 0.2  # seconds between two strikes, on average: most find a worker that has a task


def check(queue, nursery, killed, figures, seed):
    """The histories of the clients are possible, and the queue's statistics fit its tasks."""
    history = histories.read(nursery.directory)
    buried = queue.list("buried", limit=10_000)
    lives = Lives(history, killed, [clients.name_of(task.data) for task in buried])
    stats = queue.stats()
    figures.note(
        seed=seed,
        tasks=lives.processed,
        tasks_per_second=histories.rate(lives.history, "task_done"),
        lost=len(lives.lost),
        delivered_again=lives.again,
        killed_in_take=lives.unknown_takes,
        buried=len(buried),
        longest_stall=histories.longest_stall(lives.history),
    )
    assert list(lives.problems()) == []
    results = results_of(queue, lives.puts)
    figures.note(results=sum(result is not None for result in results.values()))
    assert list(lives.problems_of_results(results)) == []
    for state, number in stats.counts.items():
        assert len(queue.list(state, limit=10_000)) == number
    put = stats.transitions["X-R"] + stats.transitions.get("X-W", 0)
    known = {item for item, one in lives.puts.items() if one.outcome == histories.DONE}
    assert len(known) <= put <= len(lives.puts)
    assert put - stats.transitions["T-X"] == len(buried)
    assert lives.processed <= stats.transitions["T-X"]
    taken = sum(map(len, lives.deliveries.values()))
    assert taken <= stats.transitions["R-T"] <= taken + lives.unknown_takes
    return lives


def test_no_task_is_lost_when_workers_are_killed(server, name, nursery, seed, long, pace, figures):
    tasks, strikes = (50_000 * pace, 1_000) if long else (500, 40)
    queue = TaskQueue.create(name, url=server.url, lease=LEASE)
    arguments = {"name": name, "options": {"url": server.url, "lease": LEASE}, "seed": seed}
    population = {"work_tasks": arguments, "put_tasks": {**arguments, "items": 10**9}}
    leases = Leases(server, name, "tasks")
    killer = Killer(nursery, population, WORKERS, random.Random(seed), leases, PAUSE)
    killer.run(lambda: processed(queue), tasks, strikes, 600 if long else 300)
    end_producers(nursery)
    work_off(queue, nursery)
    figures.note(**killer.made)
    lives = check(queue, nursery, killer.killed, figures, seed)
    queue.delete()
    assert lives.again or not long


def test_no_task_is_lost_over_connections_that_break(
    server, name, nursery, seed, long, pace, figures
):
    tasks, cuts, limit = (int(50_000 * pace), 1_000, 600.0) if long else (3_000, 30, 10.0)
    queue = TaskQueue.create(name, url=server.url)
    with Proxy(server, Faults(seed)) as proxy:
        arguments = {"name": name, "options": {"url": proxy.url}, "seed": seed}
        for _ in range(WORKERS):
            nursery.start("work_tasks", **arguments)
        for _ in range(PRODUCERS):
            nursery.start("put_tasks", **arguments, items=tasks // PRODUCERS)
        deadline = time.monotonic() + limit

        def is_over():
            return not nursery.running("put_tasks") or time.monotonic() > deadline

        # A slow machine is given the time that it takes until there were enough faults.
        until(lambda: is_over() and (proxy.cuts >= cuts or not nursery.running("put_tasks")), 600)
        end_producers(nursery)
        made, cut = proxy.made, proxy.cuts
        work_off(queue, nursery)
    figures.note(faults=made)
    lives = check(queue, nursery, set(), figures, seed)
    queue.delete()
    assert not lives.again
    assert cut >= cuts


def test_no_task_is_lost_when_the_server_is_killed(durable, name, nursery, seed, long, figures):
    restarts = 20 if long else 3
    queue = TaskQueue.create(name, url=durable.url)
    arguments = {"name": name, "options": {"url": durable.url, "reconnect": 60}, "seed": seed}
    for _ in range(WORKERS):
        nursery.start("work_tasks", **arguments)
    for _ in range(PRODUCERS):
        nursery.start("put_tasks", **arguments, items=10**9)
    restart(durable, queue, nursery, restarts, random.Random(seed))
    end_producers(nursery)
    work_off(queue, nursery)
    figures.note(restarts=restarts)
    lives = check(queue, nursery, set(), figures, seed)
    assert not lives.again
