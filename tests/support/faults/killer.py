"""Lets clients be killed and stopped at random moments, and others take their place."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from brokers.broker import Broker

from faults.nursery import Client, Nursery

LEASE = 1.0
PAUSE = 0.08  # seconds between two events, on average
KILL, NAP, SLEEP, COMA = "killed", "stopped shortly", "stopped beyond the lease", "stopped, killed"


@dataclass(frozen=True)
class Leases:
    """The leases of the clients that take from a queue, as the broker keeps them."""

    server: Broker
    name: str
    discipline: str

    @property
    def now(self) -> int:
        """The broker's time, in milliseconds."""
        return self.server.clock()

    def end_of(self, client: Client) -> int:
        """When a client's lease ends, 0 when it has none."""
        leases = self.server.leases(self.name, self.discipline)
        return next((end for owner, end in leases if int(owner.split("/")[1]) == client.pid), 0)


@dataclass
class Killer:
    """Keeps so many clients of each role at work, and lets something happen to them."""

    nursery: Nursery
    population: dict[str, dict[str, object]]
    size: int
    random: random.Random
    leases: Leases | None = None
    pause: float = PAUSE
    made: Counter[str] = field(default_factory=Counter)
    slept: set[str] = field(default_factory=set)
    #: The signals that stopped clients are to get: when, which client, which signal; and when the
    #: lease ended that the client had then, 0 for none.
    due: list[tuple[float, Client, signal.Signals, int]] = field(default_factory=list)

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
            end = self.leases.end_of(victim) if self.leases else 0
            victim.send(signal.SIGSTOP)
            after = {NAP: LEASE / 4, SLEEP: 2 * LEASE, COMA: LEASE / 2}[what]
            then = signal.SIGKILL if what == COMA else signal.SIGCONT
            when = time.monotonic() + self.random.uniform(0.2, 1) * after
            self.due.append((when, victim, then, end))
        self.populate()

    def follow(self, everything: bool = False) -> None:
        """Send the signals that are due to stopped clients."""
        for event in list(self.due):
            when, victim, then, before = event
            if everything or time.monotonic() >= when:
                self.due.remove(event)
                end = self.leases.end_of(victim) if self.leases else 0
                # What it sent before it was stopped may have renewed a lease that had run out.
                end = min(before, end) if before else end
                victim.send(then)
                # A client that is seen to run loses nothing, whatever its lease.
                if self.leases and end <= self.leases.now:
                    self.slept.add(victim.name)

    def run(self, seen: Callable[[], int], items: float, strikes: float, limit: float) -> None:
        """Let so many things happen, and see so many items through."""
        deadline = time.monotonic() + limit
        self.populate()
        while self.made.total() < strikes or seen() < items:
            assert time.monotonic() < deadline, (seen(), self.made)
            time.sleep(min(self.random.expovariate(1 / self.pause), 5 * self.pause))
            if self.made.total() < strikes:
                self.strike()
            self.follow()
            self.nursery.check()
        self.follow(everything=True)

    @property
    def killed(self) -> set[str]:
        """Clients that were killed, or stopped for so long that they may have lost items."""
        return {client.name for client in self.nursery.clients if client.killed} | self.slept
