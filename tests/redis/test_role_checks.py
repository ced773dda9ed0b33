"""How many calls it takes to see whether clients with a role live, and to find a queue empty."""

from __future__ import annotations

import time
from collections import Counter

import inside
import pytest
from exchanges import Exchanges
from waiting import Background, blocked, until

from pressure_mp import Empty, JoinableQueue, Queue, ShutDown
from pressure_mp.engines.contract.session import TICK
from pressure_mp.engines.redis.role_checks import RoleChecks


def own(ops):
    """Without the looks that are still made for a queue of an earlier test."""
    return [op for op in ops if op != "renew"]


@pytest.fixture
def make(server, name, monkeypatch):
    """A handle to the queue, and what its process calls from then on."""
    made = []

    def make(kind=Queue, maxsize=0):
        q = kind(maxsize, name, url=server.url)
        q.open()
        made.append(q)
        with server.client() as client:
            # Or else they are called twice.
            for op in ("get", "get_at_once", "holders", "inspect", "renew"):
                client.script_load(inside.binding(q).scripts[op].source)
        return q, Exchanges(monkeypatch, q).ops

    yield make
    made[0].delete()


def test_a_process_that_holds_an_item_calls_once_a_look(make):
    q, ops = make(JoinableQueue)
    q.put(1)
    q.get()
    until(lambda: "renew" in ops)
    del ops[:]
    until(lambda: len(ops) >= 4)
    assert {*ops} == {"renew"}
    q.task_done()


def test_a_get_that_waits_leaves_the_roles_to_the_looks_of_its_process(make):
    q, ops = make()
    getting = Background(q.get)
    until(lambda: inside.binding(q).role_checks.left is None)  # its process has looked
    del ops[:]
    until(lambda: Counter(ops)["renew"] >= 6)
    assert Counter(ops)["holders"] <= 2  # where a look of its process came late
    q.put(1)
    assert getting.result() == 1


def test_threads_that_wait_look_after_the_roles_once_a_tick_all_together(make):
    q, ops = make(maxsize=1)
    q.put(0)
    begin = time.monotonic()
    putting = [Background(q.put, number) for number in range(4)]
    until(lambda: Counter(ops)["holders"] >= 3)
    looked, took = Counter(ops)["holders"], time.monotonic() - begin
    for _ in range(5):
        q.get()
    for one in putting:
        one.result()
    assert looked <= took / TICK + 1


@pytest.mark.parametrize("by_renewal", [True, False])
def test_a_check_is_due_when_a_role_runs_out_within_the_tick(by_renewal):
    checks = RoleChecks()
    checks.note(0.05, by_renewal)
    assert not checks.is_due()
    assert 0 < checks.left <= 0.05
    until(checks.is_due, TICK / 2)


@pytest.mark.parametrize("again", [5.0, None])
def test_a_waiting_call_comes_again_at_the_tick_unless_its_process_looks_more_often(again):
    checks = RoleChecks()
    assert checks.is_due()
    assert TICK - 0.1 < checks.left <= TICK
    checks.note(again)
    assert TICK - 0.1 < checks.left <= TICK
    checks.note(again, by_renewal=True)
    assert checks.left is None
    assert not checks.is_due()


def test_a_get_that_finds_the_queue_empty_asks_once(make):
    q, ops = make()
    for _ in range(2):
        q.put(1)
        q.get()
        del ops[:]
        with pytest.raises(Empty):
            q.get_nowait()
        assert own(ops) == ["get_at_once"]
        inside.binding(q).get_at_once.is_open = True  # as if gets had been served at once again
    q.shutdown()
    with pytest.raises(ShutDown):
        q.get_nowait()


def test_a_get_that_finds_the_queue_empty_restores_the_sign_of_space_that_was_lost(make, server):
    q, ops = make(maxsize=1)
    sign = inside.binding(q).key("not_full")
    with server.client() as client:
        client.delete(sign)
        with pytest.raises(Empty):
            q.get_nowait()
        assert own(ops) == ["get_at_once", "get"]
        assert client.llen(sign) == 1


def test_a_get_that_finds_the_queue_empty_removes_the_chunks_of_a_put_that_was_killed(make, server):
    q, ops = make()
    uploads, chunks = map(inside.binding(q).key, ("uploads", "chunks"))
    with server.client() as client:
        client.zadd(uploads, {"0123456789abcdef00000001": 1.0})
        client.hset(chunks, "0123456789abcdef:0", b"content")
        with pytest.raises(Empty):
            q.get_nowait()
        assert own(ops) == ["get_at_once", "get"]
        assert not client.exists(uploads, chunks)


@pytest.mark.usefixtures("no_ticks")
def test_a_get_that_does_not_wait_takes_no_role_of_a_get_that_waits_elsewhere(make, server, name):
    q, ops = make()
    other = Queue(name=name, url=server.url)
    other.open()
    getting = Background(other.get)
    with server.client() as client:
        until(lambda: blocked(client))
    del ops[:]
    with pytest.raises(Empty):
        q.get_nowait()
    assert own(ops) == ["get_at_once", "get"]
    q.put(1)
    assert getting.result() == 1
