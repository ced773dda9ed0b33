"""What a process remembers of the queues that it used."""

from __future__ import annotations

import gc
import operator
import tracemalloc

from pressure_mp import SimpleQueue
from pressure_mp.engines.redis.commands import Command
from pressure_mp.engines.redis.lanes import Lane
from pressure_mp.engines.redis.scripts import load


def test_the_numbers_of_a_lane_grow_whichever_queues_its_calls_are_on():
    """So a queue that was forgotten never gets a number again that it has seen."""
    lane = Lane()
    commands = [Command(load("fifo")["put_at_once"], [], b"kept:%d:" % i, 60.0) for i in range(3)]
    numbers = [int(commands[i % 3].number(lane).split()[0]) for i in range(12)]
    assert numbers == list(range(1, 13))


def test_a_call_says_again_how_long_its_reply_is_kept_when_that_is_to_be_renewed():
    lane = Lane()
    command = Command(load("fifo")["put_at_once"], [], b"kept:", 60.0)
    assert [command.number(lane) for _ in range(3)] == [b"1 120000", b"2", b"3"]
    assert command.number(lane, says_how_long=True) == b"4 120000"


def test_a_lane_forgets_queues_that_it_has_not_used_for_long():
    lane = Lane()
    for now in range(100_000):
        lane.tell(b"kept:%d" % now, now, now + 50)
        assert not lane.is_to_tell(b"kept:%d" % now, now + 49)
    assert len(lane._told) < 200


def test_a_process_that_used_many_queues_keeps_little_of_them(server, monkeypatch):
    """None of it is kept for longer than the server keeps replies."""
    monkeypatch.setattr("pressure_mp.engines.redis.binding._UNNOTICED", -10.0)
    monkeypatch.setattr("pressure_mp.engines.redis.binding._STRAY", 0.01)

    def use(number: int) -> None:
        for _ in range(number):
            with SimpleQueue(url=server.url) as q:
                q.put(1)
                assert q.get() == 1
        gc.collect()

    use(100)
    tracemalloc.start()
    try:
        sizes = []
        for _ in range(5):
            use(100)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # Memory that threads of earlier tests keep is in some of the differences; memory that is kept
    # of each queue is in all.
    assert min(map(operator.sub, sizes[1:], sizes)) / 100 < 150
