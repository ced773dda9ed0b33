"""Clients that are killed and stopped at random moments."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field

import faults_clients
import histories
import pytest
from faults_nursery import Client, Nursery
from history_checker import Deliveries, History, check, nothing_invented

from pressure_mp import Empty, JoinableQueue, Queue, ShutDown

pytestmark = pytest.mark.timeout(900)

LEASE = 1.0
BOUND = 20
PAUSE = 0.08  # seconds between two events, on average
KILL, NAP, SLEEP, COMA = "killed", "stopped shortly", "stopped beyond the lease", "stopped, killed"


@dataclass
class Killer:
    """Keeps so many clients of each role at work, and lets something happen to them."""

    nursery: Nursery
    population: dict[str, dict[str, object]]
    size: int
    random: random.Random
    made: Counter[str] = field(default_factory=Counter)
    slept: set[str] = field(default_factory=set)
    due: list[tuple[float, Client, signal.Signals]] = field(default_factory=list)

    def populate(self) -> None:
        for role, arguments in self.population.items():
            for _ in range(self.size - len(self.nursery.running(role))):
                self.nursery.start(role, **arguments)

    def strike(self) -> None:
        """Something happens to one of them, and another takes its place."""
        victims = [client for role in self.population for client in self.nursery.running(role)]
        if not victims:
            return
        victim = self.random.choice(victims)
        (what,) = self.random.choices([KILL, NAP, SLEEP, COMA], [12, 4, 1, 3])
        self.made[what] += 1
        if what == KILL:
            victim.send(signal.SIGKILL)
        else:
            victim.send(signal.SIGSTOP)
            after = {NAP: LEASE / 4, SLEEP: 2 * LEASE, COMA: LEASE / 2}[what]
            then = signal.SIGKILL if what == COMA else signal.SIGCONT
            self.due.append((time.monotonic() + self.random.uniform(0.2, 1) * after, victim, then))
        self.populate()

    def follow(self, everything: bool = False) -> None:
        """What was to come later for those that were stopped."""
        for event in list(self.due):
            when, victim, then = event
            if everything or time.monotonic() >= when:
                self.due.remove(event)
                victim.send(then)
                if time.monotonic() - victim.stopped_at > LEASE / 2:
                    self.slept.add(victim.name)

    @property
    def killed(self) -> set[str]:
        """Those that were killed, or stopped for so long that they may have lost what they had:
        the last renewal of its lease was some time before a client was stopped."""
        return {client.name for client in self.nursery.clients if client.killed} | self.slept


def run(killer: Killer, queue: Queue, items: int, strikes: int, limit: float) -> None:
    """Let so many things happen, and see so many items through; then shut the queue down."""
    deadline = time.monotonic() + limit
    killer.populate()
    while killer.made.total() < strikes or queue.stats().consumed_messages < items:
        assert time.monotonic() < deadline, (queue.stats(), killer.made)
        time.sleep(min(killer.random.expovariate(1 / PAUSE), 5 * PAUSE))
        if killer.made.total() < strikes:
            killer.strike()
        killer.follow()
        killer.nursery.check()
    killer.follow(everything=True)
    faults_clients.shut_down(queue, killer.nursery.directory)
    killer.nursery.wait(30)


def rest_of(queue: Queue) -> list[str]:
    """What is left in a queue that was shut down."""
    rest = []
    try:
        while True:
            rest.append(faults_clients.name_of(queue.get(timeout=2 * LEASE)))
    except (ShutDown, Empty):
        return rest


def test_what_was_not_got_before_a_kill_is_not_lost(server, name, nursery, seed, long, figures):
    items, strikes = (100_000, 1_000) if long else (10_000, 200)
    queue = Queue.create(name, BOUND, url=server.url, lease=LEASE)
    arguments = {"name": name, "options": {"url": server.url, "lease": LEASE}}
    population = {"consume": arguments, "produce": {**arguments, "items": 10**9}}
    killer = Killer(nursery, population, 4, random.Random(seed))
    run(killer, queue, items, strikes, 600 if long else 60)
    history = History(histories.read(nursery.directory), rest_of(queue), BOUND)
    stats = queue.stats()
    # The broker knows how many items it gave away; each one that nobody logged was on its way
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
    assert histories.longest_stall(history.operations) < 3 * (LEASE + 1)


def test_what_a_killed_consumer_had_is_delivered_again(server, name, nursery, seed, long, figures):
    items, strikes = (100_000, 1_000) if long else (10_000, 200)
    queue = JoinableQueue.create(name, BOUND, url=server.url, lease=LEASE)
    arguments = {"name": name, "options": {"url": server.url, "lease": LEASE}}
    population = {"work": {**arguments, "seed": seed}, "produce": {**arguments, "items": 10**9}}
    killer = Killer(nursery, population, 4, random.Random(seed))
    run(killer, queue, items, strikes, 600 if long else 60)
    history = History(histories.read(nursery.directory), rest_of(queue))
    for _ in history.rest:
        queue.task_done()
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
    assert histories.longest_stall(history.operations) < 3 * (LEASE + 1)
