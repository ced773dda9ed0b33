"""Random histories of concurrent operations, checked against what a bounded queue can do."""

from __future__ import annotations

import random
import time

import pytest
from brokers.servers import Server
from engines import Can
from faults import clients, histories
from faults.history_checker import History, check
from faults.nursery import Nursery
from faults.proxy import Faults, Proxy
from waiting import Background

from pressure_mp import Queue

pytestmark = [pytest.mark.timeout(900), pytest.mark.needs(Can.PROTOCOL)]

BOUNDS = [0, 1, 1, 2, 3, 5]
OPERATIONS = 40
LEASE = 0.5  # seconds for which the others wait when a client lost its broker with a role

_PLACES = [
    f"{role}_free mp:{role}_granted mp:{role}_holder".split() for role in ("producer", "consumer")
]


def tokens(server: Server, name: str) -> list[int]:
    """In how many places the producer's and the consumer's token are, at one moment."""
    with server.client() as client, client.pipeline() as looking:
        for free, granted, holder in _PLACES:
            looking.llen(f"__pressure__:{name}:{free}")
            looking.llen(f"__pressure__:{name}:{granted}")
            looking.hget(f"__pressure__:{name}:{holder}", "ticket")
        found = looking.execute()
    return [
        free + granted + (holder not in (None, b"granted"))
        for free, granted, holder in (found[:3], found[3:])
    ]


def one_history(
    nursery: Nursery, server: Server, url: str, name: str, chance: random.Random, stepwise: int
) -> History:
    """What threads of three processes, and other implementations, did with a queue."""
    bound = chance.choice(BOUNDS)
    options = {"serializer": "raw", "lease": LEASE}
    queue = Queue.create(name, bound, url=server.url, **options)
    for _ in range(3):
        arguments = {"seed": chance.randrange(2**32), "operations": OPERATIONS, "threads": 2}
        nursery.start("wander", name=name, options={**options, "url": url}, **arguments)
    for _ in range(stepwise):
        arguments = {"seed": chance.randrange(2**32), "operations": OPERATIONS}
        nursery.start("wander_stepwise", port=server.port, name=name, **arguments)
    ending = time.monotonic() + chance.uniform(0.1, 0.5)
    while time.monotonic() < ending:
        assert max(tokens(server, name)) <= 1
    # Another implementation that waits for space has the role that a shutdown needs.
    draining = Background(clients.drain, queue, nursery.directory)
    clients.shut_down(queue, nursery.directory)
    nursery.wait(30)
    draining.result()
    queue.delete()
    return History(histories.read(nursery.directory), bound=bound)


def many_histories(nursery, server, url, name, seed, figures, seconds, stepwise):
    """Histories, one after the other, for so many seconds; each must be one of a queue."""
    chance = random.Random(seed)
    directory = nursery.directory
    deadline = time.monotonic() + seconds
    number = operations = 0
    stall = 0.0
    figures.note(seed=seed)
    while time.monotonic() < deadline:
        nursery.directory = directory / str(number)
        nursery.directory.mkdir()
        history = one_history(nursery, server, url, f"{name}-{number}", chance, stepwise)
        assert check(history) == [], f"of {nursery.directory}"
        number += 1
        operations += len(history.operations)
        stall = max(stall, histories.longest_stall(history.operations))
    figures.note(histories=number, operations=operations, lost=0, duplicated=0, longest_stall=stall)


def test_every_history_is_one_of_a_queue(server, name, nursery, seed, long, figures):
    seconds = 120 if long else 8
    many_histories(nursery, server, server.url, name, seed, figures, seconds, 0)


def test_every_history_with_other_implementations_is_one_of_a_queue(
    server, name, nursery, seed, long, figures
):
    seconds = 120 if long else 8
    many_histories(nursery, server, server.url, name, seed, figures, seconds, 2)


def test_every_history_over_connections_that_break_is_one_of_a_queue(
    server, name, nursery, seed, long, figures
):
    seconds = 120 if long else 8
    with Proxy(server, Faults(seed, requests=20_000, replies=20_000)) as proxy:
        many_histories(nursery, server, proxy.url, name, seed, figures, seconds, 0)
        figures.note(faults=proxy.made)
