"""Clients that are killed and stopped at random moments."""

from __future__ import annotations

import random
import time

import pytest
from faults import clients, histories
from faults.history_checker import Deliveries, History, check, nothing_invented
from faults.killer import LEASE, Killer, Leases
from waiting import Background

from pressure_mp import Empty, JoinableQueue, Queue, ShutDown

pytestmark = pytest.mark.timeout(900)

BOUND = 20
#: Seconds. A role or an item that no client gives back stalls the others for good; any other stall
#: lasts about a lease, and as long as a loaded machine takes.
STALL = 30.0
#: Seconds for which a loaded machine may take to see the items through.
LIMIT = 600.0


def run(killer: Killer, queue: Queue, items: float, strikes: float, limit: float) -> None:
    """Let so many things happen, and see so many items through; then shut the queue down."""
    killer.run(lambda: queue.stats().consumed_messages, items, strikes, limit)
    clients.shut_down(queue, killer.nursery.directory)
    killer.nursery.wait(90)


def rest_of(queue: Queue) -> list[str]:
    """Get the items that are left in a queue that was shut down."""
    rest = []
    try:
        while True:
            rest.append(clients.name_of(queue.get(timeout=2 * LEASE)))
    except (ShutDown, Empty):
        return rest


def deal_with_rest(queue: JoinableQueue) -> list[str]:
    """Get and acknowledge the items that are left in a queue that was shut down. Items in flight
    at the clients that were killed last come back when these are known to be dead."""
    rest = []
    deadline = time.monotonic() + STALL
    joining = Background(queue.join)
    while joining.is_alive() and time.monotonic() < deadline:
        for item in rest_of(queue):
            rest.append(item)
            queue.task_done()
        joining.join(LEASE / 20)
    return rest


def test_killed_clients_lose_only_items_that_were_on_their_way_to_them(
    server, name, nursery, seed, long, pace, figures
):
    items, strikes = (100_000 * pace, 1_000) if long else (10_000 * pace, 200 * pace**0.5)
    queue = Queue.create(name, BOUND, url=server.url, lease=LEASE)
    arguments = {"name": name, "options": {"url": server.url, "lease": LEASE}}
    population = {"consume": arguments, "produce": {**arguments, "items": 10**9}}
    killer = Killer(nursery, population, 4, random.Random(seed))
    run(killer, queue, items, strikes, LIMIT)
    history = History(histories.read(nursery.directory), rest_of(queue), BOUND)
    stats = queue.stats()
    # The broker knows how many items it gave away; each item that no client logged was on its way
    # to a consumer that was killed before its get returned.
    on_their_way = stats.consumed_messages - len(history.gets)
    figures.note(
        seed=seed,
        items=stats.consumed_messages,
        items_per_second=histories.rate(history.operations),
        **killer.made,
        killed_in_get=len(history.unknown_gets),
        on_their_way_to_the_killed=on_their_way,
        lost_before_get_returned=len(history.lost) - on_their_way,
        duplicated=history.extra,
        longest_stall=histories.longest_stall(history.operations),
    )
    queue.delete()
    assert check(history) == []
    assert len(history.lost) <= on_their_way <= len(history.unknown_gets)
    assert stats.produced_messages == stats.consumed_messages
    assert histories.longest_stall(history.operations) < STALL


def test_items_in_flight_of_killed_consumers_are_delivered_again(
    server, name, nursery, seed, long, pace, figures
):
    items, strikes = (100_000 * pace, 1_000) if long else (10_000 * pace, 200 * pace**0.5)
    queue = JoinableQueue.create(name, BOUND, url=server.url, lease=LEASE)
    arguments = {"name": name, "options": {"url": server.url, "lease": LEASE}}
    population = {"work": {**arguments, "seed": seed}, "produce": {**arguments, "items": 10**9}}
    leases = Leases(server, name, "fifo")
    killer = Killer(nursery, population, 4, random.Random(seed), leases)
    run(killer, queue, items, strikes, LIMIT)
    history = History(histories.read(nursery.directory), deal_with_rest(queue))
    unfinished = queue.unfinished_tasks
    deliveries = Deliveries(history, killer.killed)
    figures.note(
        seed=seed,
        items=len(history.gets_of),
        items_per_second=histories.rate(history.operations),
        **killer.made,
        in_flight_at_the_kills=deliveries.in_flight,
        lost=len(history.lost),
        duplicated=history.extra,
        longest_stall=histories.longest_stall(history.operations),
    )
    queue.delete()
    assert list(deliveries.problems()) == []
    assert unfinished == 0
    assert check(history, [nothing_invented]) == []
    assert histories.longest_stall(history.operations) < STALL
