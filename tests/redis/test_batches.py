"""Batches on a real server: connections that break, the size of a call, foreign clients."""

from __future__ import annotations

import pytest
from stepwise import StepwiseClient
from waiting import Background, blocked, until

from pressure_mp import BrokerUnavailable, Full, JoinableQueue, PressureQueue, Queue


@pytest.mark.parametrize("losses", [1, 3])
def test_a_batch_whose_reply_is_lost_goes_in_and_comes_out_once(proxy, name, losses):
    q = Queue(name=name, url=proxy.url)
    items = [*range(300), b"\x00\xff\r\n" * 20000, "end"]
    proxy.lose(losses)
    q.put_many(items)
    assert q.stats().produced_messages == len(items)
    proxy.lose(losses)
    got = q.get_many(1000)
    while len(got) < len(items):
        got += q.get_many(1000)
    assert got == items
    assert proxy.lost == 2 * losses
    assert q.stats().consumed_messages == len(items)


def test_every_one_of_several_batches_may_lose_its_reply(proxy, name):
    q = Queue(name=name, url=proxy.url)
    proxy.lose(3)
    putting = Background(q.put_many, range(3500))
    putting.result()
    got = []
    while len(got) < 3500:
        proxy.lose()
        got += q.get_many(1000)
    assert got == list(range(3500))
    assert proxy.lost >= 7


def test_items_in_flight_of_many_survive_lost_replies(proxy, name):
    q = JoinableQueue(name=name, url=proxy.url)
    q.put_many(range(5))
    proxy.lose()
    got = q.get_many(5)
    while len(got) < 5:
        got += q.get_many(5)
    assert got == list(range(5))
    for _ in got:
        q.task_done()
    q.join()


def test_a_put_many_that_waits_with_half_of_its_batch_goes_on_when_the_connection_is_cut(
    proxy, server, name
):
    q = Queue(2, name, url=proxy.url)
    other = Queue(name=name, url=server.url)
    with server.client() as client:
        before = blocked(client)
        putting = Background(q.put_many, range(6))
        until(lambda: blocked(client) > before)
        for _ in range(3):
            proxy.cut()
            until(lambda: blocked(client) > before)
    got = []
    while len(got) < 6:
        got += other.get_many(1)
    putting.result()
    assert got == list(range(6))


def test_a_broker_that_is_lost_in_the_middle_leaves_word_of_what_went_in(proxy, name):
    q = Queue(2, name, url=proxy.url, reconnect=0)
    putting = Background(q.put_many, range(6))
    until(q.full)
    until(lambda: q.why_blocked().put.holder)
    proxy.stop()
    with pytest.raises(BrokerUnavailable) as caught:
        putting.result()
    assert (caught.value.accepted, caught.value.rest) == (2, [2, 3, 4, 5])


def test_as_many_items_as_fit_go_in_one_round_trip(own_server, name):
    q = Queue(name=name, url=own_server.url, serializer="raw")
    with own_server.client() as client:

        def calls():
            return client.info("commandstats")["cmdstat_evalsha"]["calls"]

        q.put_many([b"the scripts", b"are loaded"])
        q.get_many(2)
        q.put_many([b"also those of single items"])
        q.get_many(2)
        for items, expected in (
            ([b"x"] * 1000, 1),
            ([b"x"] * 1001, 2),
            ([bytes(5_000)] * 400, 2),
            ([bytes(10_000)] * 200, 2),
            ([bytes(100_000)] * 20, 2),
            ([bytes(2_000_000)] * 2, 2),
        ):
            before = calls()
            q.put_many(items)
            assert calls() - before == expected
            got = []
            while len(got) < len(items):
                got += q.get_many(1000)
            assert got == items
            assert calls() - before == 2 * expected


def test_a_client_that_follows_the_reference_sees_batches_as_single_items(server, name):
    theirs = StepwiseClient(server.port, name)
    q = PressureQueue(name, url=server.url)
    q.create(3)
    try:
        theirs.take("producer")
        with pytest.raises(Full) as caught:
            q.put_many([b"1"], block=False)
        assert caught.value.accepted == 0
        theirs.give_back("producer")
        with pytest.raises(Full) as caught:
            q.put_many([b"1", b"2", b"3", b"4"], timeout=0.05)
        assert caught.value.accepted == 3
        with server.client() as client:
            base = f"__pressure__:{name}"
            assert not client.exists(f"{base}:not_full")
            assert client.lrange(base, 0, -1) == [b"3", b"2", b"1"]
            assert q.get_many(2) == [b"1", b"2"]
            assert client.llen(f"{base}:not_full") == 1
            assert client.get(f"{base}:stats:produced_bytes") == b"3"
            assert client.get(f"{base}:stats:consumed_messages") == b"2"
    finally:
        theirs.abort()


def test_counters_that_are_no_numbers_keep_a_batch_out_and_in(server, name):
    q = PressureQueue(name, url=server.url)
    q.create(0)
    q.put_many([b"1", b"2", b"3"])
    with server.client() as client:
        base = f"__pressure__:{name}"
        for part, call in (
            ("produced_bytes", lambda: q.put_many([b"4", b"5"])),
            ("consumed_bytes", lambda: q.get_many(2)),
        ):
            client.set(f"{base}:stats:{part}", "many")
            before = client.lrange(base, 0, -1)
            with pytest.raises(TypeError, match=part):
                call()
            assert client.lrange(base, 0, -1) == before
            client.set(f"{base}:stats:{part}", 3 if part == "produced_bytes" else 0)
    assert q.stats().produced_messages == 3
    assert q.get_many(5) == [b"1", b"2", b"3"]
