"""Connections that are cut, delayed and half closed: nothing is lost, nothing comes twice."""

from __future__ import annotations

import time

import pytest
from faults import clients, histories
from faults.history_checker import BUFFERED_RULES, History, check
from faults.proxy import Faults, Proxy
from waiting import until

from pressure_mp import Queue

pytestmark = pytest.mark.timeout(900)

PRODUCERS = CONSUMERS = 4
BOUND = 50


def test_every_item_comes_once_over_connections_that_break(
    server, name, nursery, seed, long, pace, figures
):
    items, cuts, limit = (100_000, 1_000, 600.0) if long else (12_500, 50 * pace**0.5, 12.0)
    items = int(items * pace)
    queue = Queue.create(name, BOUND, url=server.url)
    with Proxy(server, Faults(seed)) as proxy:
        options = {"url": proxy.url}
        for _ in range(CONSUMERS):
            nursery.start("consume", name=name, options=options)
        for _ in range(PRODUCERS):
            nursery.start("produce", name=name, options=options, items=items // PRODUCERS)
        deadline = time.monotonic() + limit

        def is_over():
            return not nursery.running("produce") or time.monotonic() > deadline

        # A slow machine is given the time that it takes until there were enough faults.
        until(lambda: is_over() and (proxy.cuts >= cuts or not nursery.running("produce")), 600)
        made, cut = proxy.made, proxy.cuts
        clients.shut_down(queue, nursery.directory)
        nursery.wait(60)
    history = History(histories.read(nursery.directory), bound=BOUND)
    figures.note(
        seed=seed,
        items=len(history.gets),
        items_per_second=histories.rate(history.operations),
        faults=made,
        unknown=sum(o.outcome == histories.UNKNOWN for o in history.operations),
        lost=len(history.lost),
        duplicated=history.extra,
        longest_stall=histories.longest_stall(history.operations),
    )
    queue.delete()
    assert check(history) == []
    assert not [o for o in history.operations if o.outcome == histories.UNKNOWN]
    assert cut >= cuts
    assert len(history.gets) == items or not long


def test_every_item_comes_once_through_buffers_over_connections_that_break(
    server, name, nursery, seed, long, pace, figures
):
    items, limit = (200_000, 800.0) if long else (20_000 * pace**0.5, 300.0)
    items = int(items / PRODUCERS) * PRODUCERS
    queue = Queue.create(name, url=server.url)
    with Proxy(server, Faults(seed, replies=50_000)) as proxy:
        options = {"url": proxy.url, "buffering": 20, "prefetch": 20}
        for _ in range(CONSUMERS):
            nursery.start("consume", name=name, options=options)
        for _ in range(PRODUCERS):
            nursery.start("produce", name=name, options=options, items=items // PRODUCERS)
        until(lambda: not nursery.running("produce"), limit)  # which have flushed, as they ended
        made, cut = proxy.made, proxy.cuts
        clients.shut_down(queue, nursery.directory)
        nursery.wait(60)
    history = History(histories.read(nursery.directory))
    figures.note(
        seed=seed,
        items=len(history.gets),
        items_per_second=histories.rate(history.operations),
        faults=made,
        lost=len(history.lost),
        duplicated=history.extra,
        longest_stall=histories.longest_stall(history.operations),
    )
    assert queue.stats().in_flight == 0
    queue.delete()
    assert check(history, BUFFERED_RULES) == []
    assert len(history.gets) == items
    assert cut >= 20
