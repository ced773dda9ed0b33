"""A server that is killed and comes back, with all that it acknowledged on its disk."""

from __future__ import annotations

import random
import time

import pytest
from faults import clients, histories
from faults.history_checker import History, check
from waiting import Background, parks, until

from pressure_mp import Queue

pytestmark = pytest.mark.timeout(900)

BOUND = 20
PATIENCE = 60.0  # seconds for which a client tries to connect again
AGAIN = 40.0  # seconds after the server's return in which waiting clients go on


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    durable, name, nursery, seed, long, figures
):
    restarts = 20 if long else 3
    chance = random.Random(seed)
    options = {"url": durable.url, "reconnect": PATIENCE}
    queue = Queue.create(name, BOUND, **options)
    idle = Queue.create(f"{name}-idle", **options)
    full = Queue.create(f"{name}-full", 1, **options)
    full.put(0)
    for _ in range(2):
        nursery.start("consume", name=name, options=options)
        nursery.start("produce", name=name, options=options, items=10**9)
    waits = []
    for restart in range(1, restarts + 1):
        getting = [Background(idle.get) for _ in range(2)]
        putting = [Background(full.put, restart + half) for half in (0, 0.5)]
        time.sleep(chance.uniform(0.3, 1.5))
        until(lambda waiting=(*getting, *putting): all(map(parks, waiting)))
        durable.kill()
        time.sleep(chance.uniform(0, 2))
        durable.start()
        back = time.monotonic()
        seen = queue.stats().consumed_messages
        until(lambda seen=seen: queue.stats().consumed_messages > seen, AGAIN)
        for item in range(2):
            idle.put(item)
            full.get()
        assert sorted(one.result(AGAIN) for one in getting) == [0, 1]
        for one in putting:
            one.result(AGAIN)
        waits.append(max(one.ended_at for one in (*getting, *putting)) - back)
        nursery.check()
    clients.shut_down(queue, nursery.directory)
    nursery.wait(90)
    history = History(histories.read(nursery.directory), bound=BOUND)
    figures.note(
        seed=seed,
        items=len(history.gets),
        items_per_second=histories.rate(history.operations),
        restarts=restarts,
        unknown=sum(o.outcome == histories.UNKNOWN for o in history.operations),
        lost=len(history.lost),
        duplicated=history.extra,
        longest_wait_after_a_return=max(waits),
        longest_stall=histories.longest_stall(history.operations),
    )
    assert check(history) == []
    assert not [o for o in history.operations if o.outcome == histories.UNKNOWN]
    assert max(waits) < AGAIN
