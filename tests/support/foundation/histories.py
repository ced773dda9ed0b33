"""Clients of one queue, whose every step a seed says: they put, get, give back, close, and die."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import fdb
from simulated_fdb.cluster import Faults
from simulated_fdb.scheduling import Client, Interrupted
from simulated_fdb.simulation import Simulation

from foundation.surroundings import Surroundings
from pressure_mp import ShutDown, drivers
from pressure_mp.engines.contract.queues import How
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.engines.contract.session import Options
from pressure_mp.engines.foundationdb.address import FoundationAddress
from pressure_mp.engines.foundationdb.store import FoundationEngine
from pressure_mp.engines.kv import store as stores
from pressure_mp.engines.kv.items import StoredSlot
from pressure_mp.engines.kv.records import load_entry
from pressure_mp.engines.kv.unit import Unit
from pressure_mp.operations.deliveries import DeliveryOperations

#: Milliseconds: where a session looks again by itself, and where it is only woken.
_LEASE, _LONG_LEASE = 3000, 3_600_000
_MOST_STEPS = 50_000
#: Seconds for which a call is tried.
_PATIENCE = 100.0
#: The faults of which a history has some, and how probable each is at most.
_FAULTS = {"refused": 0.2, "never": 0.2, "done": 0.2, "late": 0.2}
#: The faults after which a watch is not set.
_HARD_FAULTS = {"too_old": 0.2, "lagging": 0.2, "watch": 0.5}
#: The traits that are drawn for a history: how probable it is that the client that is drawn stands
#: still, that a taken item goes back, and that a call is interrupted, if it lasts; whether items
#: are in flight until they are acknowledged, and then whether others give them back; the bound.
_TRAITS: dict[str, tuple[Any, ...]] = {
    "stalls": (0.0, 0.02, 0.1),
    "returns": (0.0, 0.2, 0.5),
    "interrupts": (0.0, 0.0, 0.3),
    "is_joinable": (False, False, True),
    "loses": (False, True),
    "bound": (0, 0, 0, 1, 2),
}


@dataclass(frozen=True)
class Event:
    """What a client did with an item, and between which steps."""

    item: bytes
    began: int
    ended: int


@dataclass
class Seen:
    """What the clients of a history know."""

    put: list[Event] = field(default_factory=list)
    got: list[Event] = field(default_factory=list)
    #: Items of puts that were begun, and of which no client knows whether they were done.
    doubtful: set[bytes] = field(default_factory=set)
    #: By item the step at which it was given back, for the last time.
    returned: dict[bytes, int] = field(default_factory=dict)
    #: What was found in the queue at the end.
    left: list[bytes] = field(default_factory=list)
    #: Between which steps the queue was closed.
    closed: Event | None = None


class History:
    """One history. With ``hard``, clients die, watches fail, the cluster recovers, and clocks
    differ; a session then looks again by itself. ``likely`` states traits that are else drawn."""

    def __init__(self, seed: int, here: Surroundings, hard: bool, **likely: Any) -> None:
        self.simulation = simulation = Simulation(seed, most_steps=_MOST_STEPS)
        self.rng, self.scheduler = simulation.rng, simulation.scheduler
        here.scheduler, here.has_ticks = self.scheduler, hard
        self.hard = hard
        traits = {name: self.rng.choice(choices) for name, choices in _TRAITS.items()} | likely
        self.scheduler.stalls = traits["stalls"]
        self.returns, self.interrupts = traits["returns"], traits["interrupts"]
        self.is_joinable, self.bound = traits["is_joinable"], traits["bound"]
        self.loses = self.is_joinable and traits["loses"]
        self.seen = Seen()
        #: When the last client ended, in microseconds.
        self.ended = 0
        self.operations = DeliveryOperations("queue", "fifo")
        self.producers: list[Client] = []
        self.consumers: list[Client] = []
        self._owners = itertools.count()

    def run(self) -> None:
        """Run it to its end. Raises Stuck if a client waits for ever."""
        rng = self.rng
        self.run_one(self.operations.open(How.OPEN, self.bound))
        if rng.random() < 0.6:
            most = {**_FAULTS, **_HARD_FAULTS} if self.hard else _FAULTS
            for fault in rng.sample([*most], rng.randrange(1, 4)):
                setattr(self.simulation.cluster.faults, fault, rng.random() * most[fault])
        for producer in range(rng.randrange(1, 4)):
            items = [b"%d-%d" % (producer, number) for number in range(rng.randrange(1, 4))]
            self.producers.append(self._add(lambda items=items: self._produce(items)))
        consume = self._consume_and_acknowledge if self.is_joinable else self._consume
        for consumer in range(rng.randrange(1, 4)):
            self.consumers.append(self._add(consume, may_die=consumer > 0))
        if self.loses:
            self._add(self._requeue)
        self._add(self._close, may_die=False)
        for _ in range(rng.randrange(3) if self.hard else 0):
            self.scheduler.after(rng.random() / 10, self.simulation.cluster.recover)
        self.scheduler.run()
        self.ended = self.scheduler.clock()
        self.scheduler.settle()
        self.simulation.cluster.faults = Faults()
        self._find_left()

    def end(self) -> None:
        fdb.impl.open_databases.pop(self.simulation.path, None)
        self.simulation.end()

    def _add(self, program: Callable[[], None], may_die: bool = True) -> Client:
        dies = self.hard and may_die and self.rng.random() < 0.3
        client = self.scheduler.add(program, self.rng.randrange(1, 60) if dies else None)
        if self.hard:
            client.ahead = self.rng.choice((0, 0, 0.2, -0.2))
        return client

    def _binding(self) -> Any:
        address = FoundationAddress(self.simulation.path)
        options = Options(lease=_LEASE if self.hard else _LONG_LEASE, reconnect=_PATIENCE)
        return FoundationEngine(address).bind("queue", "fifo", options)

    def run_one(self, operation: Any, binding: Any = None) -> Any:
        return drivers.drive(operation, (binding or self._binding()).session())

    def _interrupting(self) -> AbstractContextManager[None]:
        interrupted = self.rng.random() < self.interrupts
        return self.scheduler.interrupting(self.rng.randrange(1, 25) if interrupted else None)

    def _produce(self, items: list[bytes]) -> None:
        binding, seen = self._binding(), self.seen
        for item in items:
            began = self.scheduler.moment
            seen.doubtful.add(item)
            try:
                with self._interrupting():
                    self.run_one(self.operations.put(item, True, None), binding)
            except Interrupted:
                continue
            except ShutDown:
                seen.doubtful.discard(item)
                return
            seen.doubtful.discard(item)
            seen.put.append(Event(item, began, self.scheduler.moment))

    def _consume(self) -> None:
        binding = self._binding()
        while True:
            began, session = self.scheduler.moment, binding.session()
            try:
                with self._interrupting():
                    item = drivers.drive(self.operations.get(True, None), session)
            except Interrupted:
                self._take_back(session, binding)
                continue
            except ShutDown:
                return
            if self.rng.random() < self.returns:
                assert session.taken is not None, "a take cannot be undone"
                self._take_back(session, binding)
            else:
                self.seen.got.append(Event(item, began, self.scheduler.moment))

    def _take_back(self, session: Any, binding: Any) -> None:
        """Undo the session's take, if it took anything."""
        taken = session.taken
        if taken is not None:
            self.run_one(self.operations.take_back(taken), binding)
            for _, raw in taken.call.taken:
                self.seen.returned[load_entry(raw).item] = self.scheduler.moment

    def _consume_and_acknowledge(self) -> None:
        binding, owner = self._binding(), f"owner-{next(self._owners)}"
        for call in itertools.count(1):
            began, run = self.scheduler.moment, self.run_one
            try:
                taking = self.operations.take_many(owner, call, 0, 1, True, None)
                (taken,) = run(taking, binding)
            except ShutDown:
                return
            if self.rng.random() < self.returns:
                run(self.operations.requeue(owner, call=call), binding)
                self.seen.returned[taken.item] = self.scheduler.moment
            elif run(self.operations.acknowledge(owner, taken.seq), binding) is Outcome.DONE:
                self.seen.got.append(Event(taken.item, began, self.scheduler.moment))

    def _requeue(self) -> None:
        """Give back what others have in flight, as if they were not seen to live."""
        binding = self._binding()
        for _ in range(self.rng.randrange(1, 8)):
            owner = f"owner-{self.rng.randrange(len(self.consumers))}"
            self.run_one(self.operations.requeue(owner), binding)

    def _close(self) -> None:
        binding, scheduler = self._binding(), self.scheduler
        enough = self.rng.randrange(8) if not self.is_joinable else 100
        scheduler.until(
            lambda: len(self.seen.put) >= enough or all(client.is_over for client in self.producers)
        )
        if self.is_joinable and not self.hard:
            self.run_one(self.operations.join(), binding)
        began = scheduler.moment
        closing = self.operations.close(True, None, once=False, immediate=False)
        self.run_one(closing, binding)
        self.seen.closed = Event(b"", began, scheduler.moment)

    def _find_left(self) -> None:
        binding = self._binding()
        for owner in range(next(self._owners)):
            self.run_one(self.operations.requeue(f"owner-{owner}"), binding)
        self.seen.left = self.run_one(self.operations.peek_items(100), binding)

    def waiting(self) -> int:
        """How many callers are in line."""
        space = self._binding().queue.space

        def look(unit: Unit) -> int:
            return sum(map(len, StoredSlot(space, unit, "queue").lines.all))

        found: int = space.write(look, None, stores.How())
        return found
