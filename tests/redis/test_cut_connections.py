"""Connections that end at any byte between connect, greeting and first call: the call goes over the
next one. The environment variable ``PRESSURE_STORM`` has the number of rounds, if not one."""

from __future__ import annotations

import itertools
import os
import random

import pytest
from brokers.breaking import END, REPLIES, REQUESTS, RESET, Break
from waiting import Background

from pressure_mp import JoinableQueue, Queue

pytestmark = pytest.mark.usefixtures("world")

ROUNDS = int(os.environ.get("PRESSURE_STORM", "1"))
#: How often each place between two replies is tried in one, since what comes next may be faster;
#: and how many bytes are drawn.
REPEATS, DRAWN = 10, 100


@pytest.fixture
def breaking(server, proxies):
    return proxies(server)


def carries_on(q, number):
    Background(q.put, number).result()
    assert Background(q.get).result() == number


def places(proxy, q):
    """Where a connection can end until the first calls over it are done: between the parts
    that are sent at once, and at every byte."""
    proxy.cut()
    carries_on(q, -1)
    between: list[Break] = []
    everywhere: list[Break] = []
    for way, how in itertools.product((REQUESTS, REPLIES), (END, RESET)):
        ends = {end for link in proxy.links for end in link.ends[way]}
        between += [Break(way, end, how) for end in ends]
        everywhere += [Break(way, after, how) for after in range(max(ends) + 1)]
    return between, everywhere


@pytest.mark.timeout(120 * ROUNDS)
@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_call_goes_on_wherever_its_new_connection_ends(breaking, name, kind):
    q = kind(name=name, url=breaking.url)
    carries_on(q, -1)
    between, everywhere = places(breaking, q)
    seed = random.randrange(2**32)
    print("seed", seed)
    draw = random.Random(seed)
    chosen = (between * REPEATS + draw.sample(everywhere, DRAWN) for _ in range(ROUNDS))
    for number, one in enumerate(itertools.chain.from_iterable(chosen)):
        print(one)
        breaking.break_next(*[one] * draw.choice((1, 1, 2)))
        breaking.cut()
        carries_on(q, number)
    assert Background(q.qsize).result() == 0
    q.delete()
