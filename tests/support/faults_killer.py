"""Lets clients be killed and stopped at random moments, and others take their place."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from faults_nursery import Client, Nursery

LEASE = 1.0
PAUSE = 0.08  # seconds between two events, on average
KILL, NAP, SLEEP, COMA = "killed", "stopped shortly", "stopped beyond the lease", "stopped, killed"


@dataclass
class Killer:
    """Keeps so many clients of each role at work, and lets something happen to them."""

    nursery: Nursery
    population: dict[str, dict[str, object]]
    size: int
    random: random.Random
    pause: float = PAUSE
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

    def run(self, seen: Callable[[], int], items: int, strikes: int, limit: float) -> None:
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
        """Those that were killed, or stopped for so long that they may have lost what they had:
        the last renewal of its lease was some time before a client was stopped."""
        return {client.name for client in self.nursery.clients if client.killed} | self.slept
