"""Large items at a server: clients that are killed or cut off half-way, and what they leave."""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
from pathlib import Path
from unittest import mock

import contents
import inside
import numpy as np
import pytest
from brokers.lossy import LossyProxy
from brokers.servers import Server
from programs import large_items as programs
from waiting import HOURS, LIMIT, Background, lasting, until

import pressure_mp
from pressure_mp import BrokerUnavailable, DecodingError, JoinableQueue, PriorityQueue, Queue, aio
from pressure_mp.drivers import adrive
from pressure_mp.encoding.large import CHUNK
from pressure_mp.engines import retries
from pressure_mp.engines.redis import contents as chunks
from pressure_mp.engines.redis.requests import contents as requests_of_contents
from pressure_mp.operations import large as operations

LEASE = 0.25  # then contents are kept for the shortest time there is, 3 s
SIZE = 8 * CHUNK
CHUNKS = 9  # and a bit of pickle


def array(size=SIZE):
    return np.arange(size // 8, dtype="f8")


@pytest.fixture
def q(server, name):
    found = Queue(name=name, url=server.url, lease=LEASE)
    found.open()
    yield found
    if found.exists():
        found.delete()


def start(target, *args):
    """A process that says when it is half-way."""
    context = multiprocessing.get_context("spawn")
    reached = context.Event()
    process = context.Process(target=target, args=(*args, reached))
    process.start()
    assert reached.wait(LIMIT)
    return process


def end_the_leases(q, server):
    """As if the time were over for which contents are kept."""
    uploads = inside.key(q, "uploads")
    with server.client() as client:
        for token in client.zrange(uploads, 0, -1):
            client.zadd(uploads, {token: 1})


def kill(process):
    process.kill()
    process.join()


def test_a_producer_that_is_killed_leaves_nothing_for_longer_than_its_lease(q):
    producer = start(contents.put_and_stop, q, array(), 5)
    assert contents.count_chunks(q) == 5
    kill(producer)
    assert q.empty()
    q.put(array())  # others go on
    assert np.array_equal(q.get(), array())
    getting = Background(q.get)  # a get that waits clears away
    until(lambda: contents.count_chunks(q) == 0)
    assert contents.count_uploads(q) == 0
    q.put(1)
    assert getting.result() == 1


def test_the_next_large_item_clears_away_what_a_killed_producer_left(q, server):
    kill(start(contents.put_and_stop, q, array(), 5))
    end_the_leases(q, server)
    q.put(array())
    assert contents.count_chunks(q) == CHUNKS


def test_a_consumer_that_is_killed_takes_its_item_along_and_no_more(q, server):
    q.put_many([array(), "next"])
    kill(start(contents.get_and_stop, q, 5))
    assert q.get() == "next"
    assert contents.count_chunks(q) == CHUNKS
    with pytest.raises(pressure_mp.Empty):
        q.get(timeout=0.01)
    assert contents.count_chunks(q) == CHUNKS  # it may still be reading
    end_the_leases(q, server)
    getting = Background(q.get)
    until(lambda: contents.count_chunks(q) == 0)
    q.put(1)
    assert getting.result() == 1


@pytest.mark.parametrize("target", ["reading", "working"])
def test_the_item_of_a_killed_consumer_goes_back_with_its_content(server, name, target):
    with JoinableQueue(name=name, url=server.url, lease=LEASE) as q:
        q.put_many([array(), "next"])
        if target == "reading":
            kill(start(contents.get_and_stop, q, 5))
        else:
            kill(start(contents.get_and_wait, q))
        got = {}
        while len(got) < 2:
            item = q.get()
            got[type(item)] = item
            q.task_done()
        assert np.array_equal(got[np.ndarray], array())
        assert contents.count_chunks(q) == contents.count_uploads(q) == 0
        q.delete()


def test_a_large_item_whose_get_loses_the_broker_in_asyncio_goes_back(server, name):
    lost = mock.patch.object(chunks, "call", side_effect=ConnectionResetError("it broke"))

    async def main():
        async with aio.Queue(name=name, url=server.url, reconnect=0) as q:
            for _ in range(2):
                await q.put(array())
            await q.get()
            with lost, pytest.raises(BrokerUnavailable):
                await q.get()
            await q.put("next")  # as other calls of this loop do, over the same channels
            got = [await q.get(timeout=LIMIT) for _ in range(2)]
            assert {type(item) for item in got} == {np.ndarray, str}
            await q.delete()

    asyncio.run(main())


def test_a_large_item_whose_get_is_interrupted_goes_back(server, name):
    def interrupt(number):
        if number == 4:
            raise KeyboardInterrupt

    with JoinableQueue(name=name, url=server.url) as q:
        q.put(array())
        with contents.before_each_chunk(interrupt), pytest.raises(KeyboardInterrupt):
            q.get()
        assert np.array_equal(q.get(timeout=LIMIT), array())
        q.task_done()
        assert q.unfinished_tasks == contents.count_chunks(q) == 0
        q.delete()


def test_connections_cut_between_chunks_change_nothing(q, server):
    with server.client() as client:

        def cut(number):
            if number % 3 == 1:
                client.client_kill_filter(_type="normal", skipme=True)

        with contents.before_each_chunk(cut):
            for _ in range(3):
                q.put(array())
                assert np.array_equal(q.get(), array())
        assert contents.count_chunks(q) == contents.count_uploads(q) == 0
        assert q.stats().produced_messages == 3


def test_replies_that_get_lost_change_nothing(server, name):
    proxy = LossyProxy(server.port)
    try:
        q = Queue(name=name, url=proxy.url)
        with contents.before_each_chunk(lambda number: number in (2, 5) and proxy.lose()):
            q.put(array())
            assert np.array_equal(q.get(), array())
        for _ in range(4):  # of the put itself, the get, and what clears away
            proxy.lose()
            q.put(array(CHUNK))
            proxy.lose()
            assert np.array_equal(q.get(), array(CHUNK))
        assert proxy.lost == 12
        assert q.stats().produced_messages == q.stats().consumed_messages == 5
        q.delete()
    finally:
        proxy.stop()


def test_connections_cut_in_the_midst_of_chunks_change_nothing(server, name):
    proxy = LossyProxy(server.port)
    q = Queue(name=name, url=proxy.url, reconnect=LIMIT)
    going, pause = True, 0.03

    def cut():
        """Again and again, and less and less often until a call is done: none is while the chunks
        of one request take longer than a connection lasts."""
        nonlocal pause
        while going:
            proxy.cut()
            multiprocessing.Event().wait(pause)
            pause *= 1.5

    cutting = Background(cut)
    try:
        for number in range(5):
            q.put((number, array()))
            pause = 0.03
            got, content = q.get()
            pause = 0.03
            assert got == number
            assert np.array_equal(content, array())
        assert q.stats().produced_messages == 5
    finally:
        going = False
        cutting.result()
        q.delete()
        proxy.stop()


def test_an_item_that_was_stored_too_slowly_is_stored_again(q, server):
    """As when a producer is stopped for longer than its lease, before its last chunk and after."""
    uploads = inside.key(q, "uploads")
    with server.client() as client:
        times = []

        def expire(number):
            if number == 3 and len(times) < 2:
                times.append(number)
                (token,) = client.zrange(uploads, 0, -1)
                client.zadd(uploads, {token: 1})
                with pytest.raises(pressure_mp.Empty):
                    Queue(name=q.name, url=server.url).get(timeout=0.01)  # clears away
                assert client.hlen(inside.key(q, "chunks")) == 0

        with contents.before_each_chunk(expire):
            q.put(array())
        assert times == [3, 3]
        assert np.array_equal(q.get(), array())

        q.maxsize = 1
        q.put("in the way")
        putting = Background(q.put, array())
        until(lambda: client.hget(inside.key(q, "producer_holder"), "ticket"))
        until(lambda: client.zadd(uploads, {client.zrange(uploads, 0, -1)[0]: 1}, xx=True) == 0)
        assert q.get() == "in the way"
        putting.result()
        assert np.array_equal(q.get(), array())


def test_a_put_that_waits_for_long_keeps_its_content(server, name):
    with Queue(1, name, url=server.url, lease=LEASE) as q:
        q.put("in the way")
        putting = Background(q.put, array())
        with server.client() as client:
            uploads = inside.key(q, "uploads")
            first = until(lambda: client.zrange(uploads, 0, -1, withscores=True))
            later = until(
                lambda: [
                    (token, until_when)
                    for token, until_when in client.zrange(uploads, 0, -1, withscores=True)
                    if until_when > first[0][1] + 1000
                ]
            )
        assert later[0][0] == first[0][0]  # it was renewed, not sent again
        assert q.get() == "in the way"
        putting.result()
        assert np.array_equal(q.get(), array())
        q.delete()


def test_a_get_that_reads_slowly_keeps_the_content(q, server, monkeypatch):
    q.put(array())
    monkeypatch.setattr(requests_of_contents, "RENEWALS", 1e9)
    held = []
    with server.client() as client:
        uploads = inside.key(q, "uploads")

        def look(number):
            held.extend(score for _, score in client.zrange(uploads, 0, -1, withscores=True))

        with contents.before_each_chunk(look):
            assert np.array_equal(q.get(), array())
    assert held == sorted(held)
    assert held[-1] > held[0]


def test_a_content_that_is_gone_is_an_error_and_not_a_wrong_item(q, server):
    q.put_many([array(), "next"])
    with server.client() as client:

        def lose(number):
            if number == 4:
                client.unlink(inside.key(q, "chunks"))

        with (
            contents.before_each_chunk(lose),
            pytest.raises(DecodingError, match="no content any more"),
        ):
            q.get()
    assert q.get() == "next"
    assert q.stats().rejected == 1


@pytest.mark.parametrize("number", [0, 4, CHUNKS - 1])
@pytest.mark.parametrize("instead", [None, b"", b"shorter", bytes(CHUNK + 1), bytes(70_000)])
def test_one_wrong_chunk_among_several_is_an_error_and_the_next_item_is_whole(
    q, server, number, instead
):
    """They are asked for together: what comes behind the wrong one is not taken for another."""
    q.put_many([array(), "next"])
    with server.client() as client:
        chunks = inside.key(q, "chunks")
        (field,) = (f for f in client.hkeys(chunks) if f.endswith(b":%d" % number))
        if instead is None:
            client.hdel(chunks, field)
        else:
            client.hset(chunks, field, instead)
    with pytest.raises(DecodingError, match="no content any more"):
        q.get()
    assert q.get() == "next"
    q.put(array())
    assert np.array_equal(q.get(), array())


def test_a_server_that_lost_its_scripts_is_given_them_among_several_chunks(q, server):
    with server.client() as client:
        client.script_flush()
    q.put(array())
    assert np.array_equal(q.get(), array())


@pytest.mark.parametrize("replies", range(1, 6))
def test_a_reply_that_is_lost_among_replies_to_several_chunks_changes_nothing(
    server, name, replies
):
    proxy = LossyProxy(server.port)
    try:
        q = Queue(name=name, url=proxy.url)
        q.put(array())
        for _ in range(3):
            proxy.lose(replies)
            q.put(array())
            proxy.lose(replies)
            assert np.array_equal(q.get(), array())
        assert np.array_equal(q.get(), array())
        assert proxy.lost == 6 * replies
        q.delete()
    finally:
        proxy.stop()


def test_an_item_that_another_client_takes_off_the_list_leaves_no_chunks(q, server):
    q.put(array())
    with server.client() as client:
        assert client.rpop(inside.key(q, "data")).startswith(b"\xfamp1")
    with pytest.raises(pressure_mp.Empty):
        q.get(block=False)
    assert contents.count_chunks(q) == contents.count_uploads(q) == 0


def test_a_queue_that_is_deleted_meanwhile_keeps_nothing_of_an_item(server, name):
    q = Queue(name=name, url=server.url)
    with (
        contents.before_each_chunk(lambda number: number == 4 and q.delete()),
        pytest.raises(pressure_mp.QueueDoesNotExistError),
    ):
        q.put(array())
    with server.client() as client:
        assert lasting(client, f"*{name}*") == []


def test_an_anonymous_queue_leaves_no_chunk(server):
    q = Queue(url=server.url)
    q.put(array())
    q.close()
    with server.client() as client:
        assert lasting(client, f"*{q.name}*") == []


def test_no_call_holds_the_server_up_for_a_whole_item(name):
    """A server that refuses every argument that is larger than the smallest limit that it has."""
    server = Server("valkey", ("--proto-max-bulk-len", "1mb"))
    try:
        q = Queue(name=name, url=server.start().url)
        item = array(64 << 20)
        with server.client() as client:
            client.config_set("commandlog-reply-larger-than", 1 << 20)
            q.put(item)
            assert np.array_equal(q.get(), item)
            assert client.execute_command("COMMANDLOG", "LEN", "large-reply") == 0
    finally:
        server.stop()


def test_a_server_that_forgot_the_script_is_given_it_again(name):
    server = Server("valkey")
    try:
        q = Queue(name=name, url=server.start().url)
        q.put(array())
        with (
            server.client() as client,
            contents.before_each_chunk(lambda number: number == 3 and client.script_flush()),
        ):
            q.put(array())
        assert np.array_equal(q.get(), array())
    finally:
        server.stop()


def test_a_server_without_memory_refuses_and_keeps_nothing(name, monkeypatch):
    # What was stored is removed, however long it takes.
    monkeypatch.setattr(retries, "GRACE", HOURS)
    server = Server("valkey", ("--maxmemory", "24mb", "--maxmemory-policy", "noeviction"))
    try:
        q = Queue(name=name, url=server.start().url)
        with pytest.raises(pressure_mp.BrokerFull, match="OOM"):
            q.put(array(64 << 20))
        assert contents.count_chunks(q) == 0
        q.put(array(4 << 20))
        assert q.get().nbytes == 4 << 20
    finally:
        server.stop()


def test_a_server_whose_memory_is_full_removes_a_content_that_is_not_queued_after_all(
    own_server, name
):
    q = Queue(name=name, url=own_server.url)
    large = contents.sample(chunks=40)  # more than one call removes
    inside.run(q, operations.store(large, None))
    assert contents.count_chunks(q) == 40
    with own_server.client() as client:
        client.config_set("maxmemory", "1mb")
        with pytest.raises(pressure_mp.BrokerError, match="OOM"):
            q.put("no memory")
        inside.run(q, operations.sweep(large.token))
        assert contents.count_chunks(q) == contents.count_uploads(q) == 0


def test_a_key_of_another_type_is_named(q, server):
    with server.client() as client:
        client.set(inside.key(q, "chunks"), "no hash")
        with pytest.raises(pressure_mp.WrongKeyTypeError, match="mp:chunks"):
            q.put(array())


@pytest.mark.parametrize("side", ["put", "get"])
@pytest.mark.parametrize("kind", ["array", "bytes"])
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak")
def test_the_peak_of_memory_is_at_most_two_and_a_half_times_the_item(valkey, name, side, kind):
    with Queue(name=name, url=valkey.url) as q:
        if side == "get":
            q.put(programs.make(kind))
        run = subprocess.run(
            [sys.executable, programs.__file__, valkey.url, name, side, kind],
            capture_output=True,
            text=True,
            check=True,
        )
        assert 0.9 < float(run.stdout) < 2.5
        q.delete()


def test_tasks_put_and_get_large_items(server, name):
    q = Queue(name=name, url=server.url)
    q.open()

    async def run(operation):
        return await adrive(operation, inside.binding(q).asession())

    async def exchange():
        await run(inside.operations(q).put_object(array(), True, None))
        return await run(inside.operations(q).get_object(True, None))

    async def cancelled(number, operation):
        """The operation is cancelled before it moves this chunk."""
        task = asyncio.ensure_future(run(operation))
        with (
            contents.before_each_chunk(lambda at: at == number and task.cancel()),
            pytest.raises(asyncio.CancelledError),
        ):
            await task

    async def everything():
        got = await exchange()
        assert np.array_equal(got, array())
        await cancelled(4, inside.operations(q).put_object(array(), True, None))
        assert q.empty()
        q.put(array())
        await cancelled(
            4, inside.operations(q).peek(*await run(inside.operations(q).get_many(1, True, None)))
        )
        assert np.array_equal(await exchange(), array())

    asyncio.run(everything())
    q.delete()


def test_large_items_of_other_orders_go_back_to_their_place_after_nothing(server, name):
    with PriorityQueue(1, name, url=server.url) as q:
        q.put((2, array()))
        putting = Background(q.put, (1, array()))
        with server.client() as client:
            until(lambda: client.hlen(inside.key(q, "chunks")) == 2 * CHUNKS)
        assert q.get()[0] == 2
        putting.result()
        assert q.get()[0] == 1
        assert contents.count_chunks(q) == contents.count_uploads(q) == 0
        q.delete()
