"""The queue of FoundationDB's documents, on the simulator: a test of the simulator itself.

It has to be found to do what it promises, and no more: a commit whose outcome is unknown is tried
again, so that an item may be put twice, and a taken item may be lost.
"""

from __future__ import annotations

from collections import Counter

import fdb
import pytest

PRODUCERS, ITEMS = 4, 25

queue = fdb.Subspace(("Q",))


class Recipe:
    """The document's enqueue and dequeue; how often each was tried, and what came of it."""

    def __init__(self, simulation):
        self.rng = simulation.rng
        self.tries = Counter()
        self.got = []
        self.putting = PRODUCERS

    @fdb.transactional
    def _enqueue(self, tr, value):
        self.tries["enqueue"] += 1
        tr[queue[self._last_index(tr) + 1][self.rng.randbytes(20)]] = value

    @staticmethod
    def _last_index(tr):
        r = queue.range()
        for key, _ in tr.snapshot.get_range(r.start, r.stop, limit=1, reverse=True):
            return queue.unpack(key)[0]
        return 0

    @fdb.transactional
    def _dequeue(self, tr):
        self.tries["dequeue"] += 1
        r = queue.range()
        for item in tr.get_range(r.start, r.stop, limit=1):
            del tr[item.key]
            return item.value
        return None

    def produce(self, database, producer):
        for number in range(ITEMS):
            self._enqueue(database, b"%d %d" % (producer, number))
        self.putting -= 1

    def consume(self, database):
        while True:
            is_last = not self.putting
            item = self._dequeue(database)
            if item is not None:
                self.got.append(tuple(map(int, item.split())))
            elif is_last:
                return


@pytest.fixture
def run(simulate):
    """Runs four producers and some consumers to their ends."""

    def run(seed, consumers, **faults):
        simulation = simulate(seed, **faults)
        recipe, scheduler = Recipe(simulation), simulation.scheduler
        for producer in range(PRODUCERS):
            scheduler.add(lambda n=producer: recipe.produce(simulation.database(), n))
        for _ in range(consumers):
            scheduler.add(lambda: recipe.consume(simulation.database()))
        scheduler.run()
        return recipe

    return run


@pytest.mark.parametrize("consumers", [1, 4, 8])
def test_no_enqueue_conflicts_and_each_item_comes_once(run, consumers):
    recipe = run(consumers, consumers)
    assert recipe.tries["enqueue"] == PRODUCERS * ITEMS
    assert sorted(recipe.got) == [(p, n) for p in range(PRODUCERS) for n in range(ITEMS)]


def test_the_items_of_each_producer_come_in_its_order(run):
    for seed in range(3):
        recipe = run(seed, 1)
        for producer in range(PRODUCERS):
            assert [n for p, n in recipe.got if p == producer] == [*range(ITEMS)]


def test_several_dequeues_at_a_time_conflict(run):
    recipe = run(0, 8)
    assert recipe.tries["dequeue"] > 1.1 * len(recipe.got)


def test_with_unknown_outcomes_items_come_twice_and_are_lost(run):
    twice = lost = 0
    for seed in range(4):
        recipe = run(seed, 1, never=0.025, done=0.025)
        times = Counter(recipe.got)
        twice += sum(times.values()) - len(times)
        lost += PRODUCERS * ITEMS - len(times)
    assert twice > 4
    assert lost > 4
