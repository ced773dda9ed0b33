"""Batches of items, which few statements put and take, are in the order of single puts and gets."""

from __future__ import annotations

import collections
import random

import pytest
from sessions import ask, bind

from pressure_mp.encoding import sort_keys
from pressure_mp.engines.contract.fair import GetKeys, GetQueued
from pressure_mp.engines.contract.items import Added, NotComparable, PeekItems, Purge, Put, Take
from pressure_mp.engines.contract.queues import GetStats, How, Open
from pressure_mp.engines.contract.session import Options
from pressure_mp.engines.memory.address import MemoryAddress
from pressure_mp.engines.memory.engine import MemoryEngine


@pytest.fixture
def opened(postgres, name):
    """A function that opens a queue of a discipline at the server, and one in memory."""

    def open_both(discipline):
        memory = MemoryEngine(MemoryAddress()).bind(name, discipline, Options(lease=5000))
        both = bind(postgres.limited_url, name, discipline), memory
        for one in both:
            ask(one, Open(How.CREATE, 0))
        return both

    return open_both


def draw_keys(drawn, discipline, number):
    if discipline == "fair":
        return [
            b"%d %b" % (drawn.randint(1, 3), sort_keys.encode(f"key {drawn.randint(1, 12)}"))
            for _ in range(number)
        ]
    if discipline != "priority":
        return []
    values = [drawn.randint(0, drawn.choice([3, 500])) for _ in range(number)]
    if drawn.random() < 0.3:  # it cannot be compared with the others
        values[drawn.randrange(number)] = drawn.choice(["text", (1, 2)])
    return [sort_keys.encode(value) for value in values]


@pytest.mark.parametrize("discipline", ["fifo", "lifo", "priority", "fair"])
@pytest.mark.parametrize("seed", range(4))
def test_batches_are_put_and_taken_as_in_memory(opened, discipline, seed):
    drawn, both = random.Random(seed), opened(discipline)
    queued = 0
    for step in range(25):
        size = drawn.choice([1, 2, 7, 60])
        if drawn.random() < 0.6:
            items = [b"%d %d" % (step, at) for at in range(size)]
            request = Put(items, draw_keys(drawn, discipline, size))
        else:
            request = Take(size)
        server, memory = (ask(one, request) for one in both)
        assert server == memory, (step, request)
        queued += server.number if isinstance(server, Added) else 0
        server, memory = (ask(one, PeekItems(0, 1000)) for one in both)
        assert server == memory, (step, request)
        if discipline == "fair":
            server, memory = (sorted(ask(one, GetKeys())) for one in both)
            assert server == memory, (step, request)
    server, memory = (ask(one, GetStats()) for one in both)
    assert queued > 100
    assert (server.length, server.consumed_messages) == (memory.length, memory.consumed_messages)
    assert server.produced_messages == memory.produced_messages == queued


@pytest.mark.parametrize("discipline", ["lifo", "priority", "fair"])
def test_batches_that_go_back_come_out_again_in_the_same_order(opened, discipline):
    drawn, (queue, _) = random.Random(1), opened(discipline)
    keys = [key for key in draw_keys(random.Random(1), discipline, 200) if b"text" not in key]
    for start in range(0, 200, 50):
        items = [b"%d" % at for at in range(start, start + 50)]
        ask(queue, Put(items, keys[start : start + 50]))
    placed = ask(queue, PeekItems(0, 1000))
    for _ in range(5):
        session = queue.session()
        taken = session.call(Take(drawn.choice([1, 30, 200])))
        assert taken.items == [item for item, _ in placed[: len(taken.items)]]
        ask(queue, session.taken)
        session.end()
        assert ask(queue, PeekItems(0, 1000)) == placed
        if discipline == "fair":
            assert count_keys(queue) == collections.Counter(key for _, key in placed)
    taken = []
    while len(taken) < 200:
        taken += ask(queue, Take(70)).items
    assert taken == [item for item, _ in placed]
    if discipline == "fair":
        assert ask(queue, GetKeys()) == []


def count_keys(queue):
    """How many items of each key the queue says that it has, by the sort keys of weight 1."""
    return {b"1 " + key: ask(queue, GetQueued(key)) for key in ask(queue, GetKeys())}


def test_items_that_go_back_after_a_purge_have_their_keys_again(opened):
    queue, _ = opened("fair")
    keys = [b"1 a", b"1 b", b"1 a"]
    ask(queue, Put([b"0", b"1", b"2"], keys))
    session = queue.session()
    assert session.call(Take(3)).items == [b"0", b"1", b"2"]
    ask(queue, Purge())
    ask(queue, session.taken)
    session.end()
    assert count_keys(queue) == collections.Counter(keys)
    assert ask(queue, Put([b"3"], [b"1 b"])) == Added(1)
    assert ask(queue, Take(9)).items == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("number", [3, 40])
def test_a_batch_is_added_up_to_the_first_priority_that_cannot_be_compared(opened, number):
    queue, _ = opened("priority")
    text, *numbers = (sort_keys.encode(value) for value in ("text", *range(number)))
    items = [b"%d" % at for at in range(number + 1)]
    assert ask(queue, Put(items, [*numbers, text])) == Added(number)
    for other in (text, numbers[0]):
        assert ask(queue, Put([b"a", b"b"], [text, other])) == NotComparable(numbers[-1])
    assert ask(queue, Put([b"a", b"b", b"c"], [numbers[1], text, numbers[0]])) == Added(1)
    assert ask(queue, Take(2)).items == [b"0", b"1"]
