"""A get that waits at an anonymous queue is given the item with the news that it is there."""

from __future__ import annotations

import os
import signal

import inside
import psutil
import pytest
from programs import receiving as programs
from waiting import LIMIT, Background, blocked, until

from pressure_mp import BrokerUnavailable, ConsumerInUseError, Empty, Queue, SimpleQueue
from pressure_mp.drivers import drive_on, ending
from pressure_mp.engines import retries
from pressure_mp.engines.contract.session import ONE_TRY
from pressure_mp.engines.redis import blocking_wire, received_items, roles, turns
from pressure_mp.engines.redis.lanes import Lane
from pressure_mp.engines.redis.statuses import DECLINED, DONE, EMPTY, WAIT

MINE, ANOTHERS = "h/1/1:receiver-1", "h/1/1:receiver-2"
LEASE = 3_600_000

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def make(own_server):
    """Handles that are closed at the end."""
    made = []

    def make(kind=SimpleQueue, *args, **options):
        made.append(kind(*args, url=own_server.url, **options))
        return made[-1]

    yield make
    for handle in made:
        handle.close()


@pytest.fixture(autouse=True)
def one_wait(monkeypatch):
    """Between the first wait of a get and the next one an item would be found, and not given."""
    monkeypatch.setattr(turns, "FIRST_WAIT", LIMIT)


@pytest.fixture
def client(own_server):
    with own_server.client() as client:
        yield client


@pytest.fixture
def exchanges(monkeypatch):
    """How many calls were waited for."""
    made = []
    exchange = blocking_wire.BlockingWire.exchange_now

    def noting(self, packed):
        made.append(packed)
        return exchange(self, packed)

    monkeypatch.setattr(blocking_wire.BlockingWire, "exchange_now", noting)
    return made


def waiting(q, client):
    """A get of another thread that waits at the server."""
    get = Background(q.get)
    until(lambda: blocked(client) == 1)
    return get


def push(client, q, item):
    """Have an item in the queue, without a call of this process."""
    client.lpush(f"{q.prefix}:{q.name}", inside.encode(q, item))


def call(q, op, *args):
    session = inside.bind(q).session()
    try:
        return session.script(op, args)
    finally:
        session.end()


def stand_by(q, ticket=MINE, given=b""):
    return call(q, "get_or_wait", f"client of {ticket}", ticket, LEASE, given)


def item_in(q):
    """The only item that is queued, as it is there."""
    with inside.client(q) as client:
        (item,) = client.lrange(f"{q.prefix}:{q.name}", 0, -1)
    return item


# To be given an item


def test_a_waiting_get_is_handed_the_item_without_another_round_trip(make, client, exchanges):
    q = make()
    get = waiting(q, client)
    del exchanges[:]
    push(client, q, 1)
    assert get.result() == 1
    assert not exchanges
    assert q.empty()


def test_an_item_given_to_a_waiting_get_is_taken_once_and_counted(make, client):
    q = make(Queue)
    for number in range(50):
        get = waiting(q, client)
        q.put(number)
        assert get.result() == number
    stats = q.stats()
    assert (stats.length, stats.consumed_messages) == (0, 50)
    assert stats.consumed_bytes == stats.produced_bytes


@pytest.mark.parametrize("size", [received_items._SMALL, 300_000])
def test_a_large_item_comes_whole(make, client, size):
    q = make()
    for number in range(3):
        get = waiting(q, client)
        q.put(bytes([number]) * size)
        assert get.result() == bytes([number]) * size
    assert q.empty()


# No other get takes it meanwhile


def test_no_other_get_takes_an_item_that_a_receiver_is_given(make, monkeypatch):
    monkeypatch.setattr(turns, "GRACE", 0.01)
    q = make()
    assert stand_by(q)[0] == EMPTY
    q.put(1)
    other = inside.copy(q)
    with pytest.raises(ConsumerInUseError):
        inside.run(other, inside.operations(other).get(False, None))
    with pytest.raises(Empty):
        inside.run(other, inside.operations(other).get(True, 0.01))
    assert stand_by(q, ANOTHERS) == [DECLINED]
    item = item_in(q)
    assert stand_by(q, given=item) == [DONE, item]
    assert q.empty()


def test_an_item_that_a_receiver_is_given_does_not_count_for_other_calls(make, monkeypatch):
    """Other calls wait until the receiver has come for it, but not for ever."""
    monkeypatch.setattr(roles, "GRACE", LIMIT)
    q = make()
    stand_by(q)
    q.put(1)
    size = Background(inside.run, q, inside.operations(q).length())
    until(lambda: call(q, "length", 0)[0] == b"reserved")
    stand_by(q, given=item_in(q))
    assert size.result() == 0


def test_a_receiver_does_not_hinder_other_calls_while_no_item_is_there(make):
    q = make()
    stand_by(q)
    assert q.empty()
    with pytest.raises(Empty):
        inside.run(q, inside.operations(q).get(False, None))


def test_an_item_that_is_put_back_in_front_meanwhile_stays(make):
    q = make(Queue, prefetch=0, buffering=0)
    q.put(1)
    session = inside.bind(q).session()
    first = drive_on(inside.operations(q).get(False, None), session)
    session.interrupted()
    taken = session.taken
    session.end()
    stand_by(q)
    q.put(2)
    given = item_in(q)
    inside.run(q, inside.operations(q).take_back(taken))
    assert stand_by(q, given=given) == [DONE, given]
    assert item_in(q) == first


def test_a_receiver_that_lost_the_role_takes_nothing(make):
    q = make()
    stand_by(q)
    q.put(1)
    call(q, "free_roles", MINE, LEASE)
    assert stand_by(q, given=item_in(q)) == [DECLINED]
    assert q.get() == 1


def test_a_receiver_that_has_the_role_and_saw_no_item_takes_the_first(make):
    q = make()
    stand_by(q)
    q.put(1)
    assert call(q, "get", 0, "me", MINE, WAIT, "first", LEASE)[0] == DONE


# Receivers that are stopped, killed or cut off


def test_a_process_stopped_for_longer_than_its_lease_gets_no_item_that_others_got(
    make, client, start
):
    q = make(Queue, lease=1)
    process, pipe = start(programs.get_items, q, 2, method="spawn")
    assert pipe.recv() == "begins"
    until(lambda: blocked(client) == 1)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    q.put("first")
    assert q.get(timeout=LIMIT) == "first"
    os.kill(process.pid, signal.SIGCONT)
    q.put("second")
    assert pipe.recv() == "second"
    q.put("third")
    assert pipe.recv() == "third"
    process.join()
    assert q.stats().consumed_messages == 3


def test_an_item_given_to_a_process_that_is_killed_then_goes_to_the_next_get(make, client, start):
    q = make(Queue)
    process, pipe = start(programs.get_items, q, 1, method="spawn")
    assert pipe.recv() == "begins"
    until(lambda: blocked(client) == 1)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    q.put("first")
    process.kill()
    process.join()
    assert q.get(timeout=LIMIT) == "first"
    assert q.stats().consumed_messages == 1


def get_over_a_connection_that_breaks(q, client, monkeypatch):
    """Wait for an item, and be given it; the call that takes it out is not sent."""
    send = blocking_wire.BlockingWire.send_now

    def lose(self, packed):
        monkeypatch.setattr(blocking_wire.BlockingWire, "send_now", send)
        client.client_kill_filter(_id=self.id)

    get = waiting(q, client)
    monkeypatch.setattr(blocking_wire.BlockingWire, "send_now", lose)
    push(client, q, 1)
    assert get.result() == 1


def test_a_call_that_takes_an_item_out_is_sent_again_after_its_connection_broke(
    make, client, monkeypatch
):
    q = make()
    get_over_a_connection_that_breaks(q, client, monkeypatch)
    assert item_in(q)
    assert q.empty()
    assert q.stats().consumed_messages == 1


def test_a_call_that_is_sent_again_keeps_no_reply_in_the_lane_of_another_call(
    make, client, monkeypatch
):
    """A call is sent again over the first idle connection, which has the lane of that call then."""
    q = make()
    get_over_a_connection_that_breaks(q, client, monkeypatch)
    pool = inside.binding(q).engine.thread_pool
    (unread,) = [one for one in pool._all if one.unread is not None]
    unread.lane = others = Lane()
    assert q.empty()
    assert not client.keys(f"*:kept:{others.id.decode()}")


def test_a_call_over_another_connection_finds_out_that_the_first_one_broke(
    make, client, monkeypatch
):
    q, other = make(), make()
    other.put(0)
    session = inside.bind(other).session()
    drive_on(inside.operations(other).get(False, None), session)
    get_over_a_connection_that_breaks(q, client, monkeypatch)
    session.end()  # its connection is the next one in use
    assert other.empty()
    assert client.llen(f"{q.prefix}:{q.name}") == 0


def test_an_item_got_by_a_process_that_is_cut_off_then_and_stays_silent_comes_again(
    make, client, start
):
    q = make(lease=1)
    process, pipe = start(programs.get_and_be_cut_off, q, method="spawn")
    assert pipe.recv() == "begins"
    until(lambda: blocked(client) == 1)
    push(client, q, 1)
    assert pipe.recv() == 1
    assert q.get(timeout=LIMIT) == 1
    pipe.send("end")
    process.join()


def test_a_call_that_the_server_refuses_does_not_mix_up_the_replies_that_follow(
    make, client, monkeypatch
):
    q = make()
    send = blocking_wire.BlockingWire.send_now

    def forget_scripts(self, packed):
        monkeypatch.setattr(blocking_wire.BlockingWire, "send_now", send)
        client.script_flush()
        send(self, packed)

    get = waiting(q, client)
    monkeypatch.setattr(blocking_wire.BlockingWire, "send_now", forget_scripts)
    push(client, q, 1)
    assert get.result() == 1
    assert q.empty()
    for number in range(10):
        q.put(number)
    assert [q.get() for _ in range(10)] == list(range(10))
    assert q.stats().consumed_messages == 11


def test_a_call_that_the_server_refuses_is_sent_again_also_when_it_does_the_next_call(
    make, client, monkeypatch
):
    q = make(Queue)
    source = inside.bind(q).scripts["get_or_wait"].source.decode()
    send = blocking_wire.BlockingWire.send_now

    def forget_for_a_moment(self, packed):
        monkeypatch.setattr(blocking_wire.BlockingWire, "send_now", send)
        client.script_flush()
        send(self, packed)
        until(lambda: client.info("errorstats").get("errorstat_NOSCRIPT"))
        client.script_load(source)

    get = waiting(q, client)
    client.config_resetstat()
    monkeypatch.setattr(blocking_wire.BlockingWire, "send_now", forget_for_a_moment)
    push(client, q, 1)
    assert get.result() == 1
    with pytest.raises(Empty):
        q.get(timeout=0.01)
    assert client.llen(f"{q.prefix}:{q.name}") == 0


def test_a_call_without_a_reply_is_sent_again_although_the_next_call_gives_up(
    make, client, monkeypatch
):
    """A server drops the calls that it put off when their connection is closed."""
    monkeypatch.setattr(retries, "GRACE", 0.1)
    q = make()
    send = blocking_wire.BlockingWire.send_now

    def pause(self, packed):
        monkeypatch.setattr(blocking_wire.BlockingWire, "send_now", send)
        client.client_pause(500, all=False)
        send(self, packed)

    get = waiting(q, client)
    monkeypatch.setattr(blocking_wire.BlockingWire, "send_now", pause)
    push(client, q, 1)
    assert get.result() == 1
    with pytest.raises(BrokerUnavailable):
        inside.run(q, ending(inside.operations(q).length(), ONE_TRY))
    assert client.llen(f"{q.prefix}:{q.name}") == 0
    assert q.stats().consumed_messages == 1
