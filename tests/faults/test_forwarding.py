"""Workers that are killed, and a server that is killed: each item comes through a pipeline of
forwards exactly once."""

from __future__ import annotations

import random
import signal
import time

import pytest
from faults import forwarding
from waiting import until

pytestmark = pytest.mark.timeout(3600)

ROLES = ["work_as_first", "work_as_second", "work_as_third"]
#: How many workers each stage has.
WORKERS = 2
#: Seconds between two strikes, on average.
PAUSE = 0.3
#: Seconds in which an item comes to the end at least, once nothing happens any more.
QUIET = 60.0


def test_each_item_comes_through_a_pipeline_once(durable, name, nursery, seed, long, figures):
    number, kills, restarts = (20_000, 200, 10) if long else (800, 10, 1)
    chance = random.Random(seed)
    options = {"url": durable.url, "lease": 1.0, "reconnect": 60}
    stages = [
        make(name, **options)
        for make in (
            *(forwarding.first_of, forwarding.second_of),
            *(forwarding.third_of, forwarding.last_of),
        )
    ]
    first, second, third, last = stages
    for start in range(0, number, 100):
        first.put_many(list(map(forwarding.made_of, range(start, min(start + 100, number)))))
    last.open()
    second.open()
    began = time.monotonic()
    arguments = {"name": name, "seed": seed, "options": options}
    for role in ROLES * WORKERS:
        nursery.start(role, **arguments)
    strikes = ["kill"] * kills + ["restart"] * restarts
    chance.shuffle(strikes)
    came = 0
    for strike in strikes:
        time.sleep(chance.uniform(0, 2 * PAUSE))
        if strike == "kill":
            victim = chance.choice([one for role in ROLES for one in nursery.running(role)])
            victim.send(signal.SIGKILL)
            nursery.start(victim.role, **arguments)
        else:
            durable.kill()
            time.sleep(chance.uniform(0, 1))
            durable.start()
            before = last.qsize()
            until(lambda before=before: last.qsize() > before or before == number)
        came = last.qsize()
        nursery.check()
    struck = time.monotonic()
    while (before := last.qsize()) < number:
        until(lambda before=before: last.qsize() > before, QUIET)
    ended = time.monotonic()
    for stage in (first, second, third):
        stage.shutdown()
    nursery.wait(QUIET)
    found = list[int]()
    while not last.empty():
        found += [one for one, _ in last.get_many(1000)]
    again = [
        stats.transitions["R-T"] - stats.transitions["T-X"]
        for stats in (first.stats(), third.stats())
    ]
    figures.note(
        seed=seed,
        items=number,
        came=len(found),
        lost=number - len(set(found)),
        twice=len(found) - len(set(found)),
        kills=kills,
        restarts=restarts,
        came_before_the_last_strike=came,
        taken_again=sum(again),
        seconds_of_strikes=struck - began,
        seconds=ended - began,
        forwards_per_second=3 * number / (ended - began),
    )
    assert sorted(found) == list(range(number))
    assert second.unfinished_tasks == 0
    for stage in (first, third):
        transitions = stage.stats().transitions
        assert transitions["X-R"] == transitions["T-X"] == number
