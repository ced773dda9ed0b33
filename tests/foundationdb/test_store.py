"""Queues in a simulated cluster of FoundationDB: conflicts, unknown outcomes, hosts, forks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from ctypes.util import find_library

import pytest
import started
from brokers.foundationdb import Foundation
from simulated_fdb.cluster import Faults
from waiting import HOURS, LIMIT, Background, until

from pressure_mp import (
    AddressError,
    BrokerError,
    BrokerUnavailable,
    Empty,
    ItemTooLargeError,
    JoinableQueue,
    NotSupportedError,
    Queue,
    TaskQueue,
    aio,
)
from pressure_mp.engines import cancelled_calls, registry
from pressure_mp.engines.contract import session
from pressure_mp.engines.contract.items import Renew, Take
from pressure_mp.engines.contract.replies import NoItem
from pressure_mp.engines.foundationdb import store
from pressure_mp.engines.foundationdb.store import FoundationStore
from pressure_mp.engines.foundationdb.txn import FoundationTxn
from pressure_mp.engines.kv import line
from pressure_mp.engines.kv.packing import END
from pressure_mp.engines.kv.store import How
from pressure_mp.identity import processes

pytestmark = pytest.mark.skipif(
    "PRESSURE_TEST_FDB" in os.environ, reason="makes faults, which only the simulator has"
)


@pytest.fixture
def broker():
    with Foundation().serving() as broker:
        yield broker


@pytest.fixture
def cluster(broker):
    return broker.cluster


def together(*functions):
    """Call functions in threads, at the same time; return their results."""
    gate = threading.Barrier(len(functions))

    def run(function):
        gate.wait()
        return function()

    return [one.result() for one in [Background(run, function) for function in functions]]


def test_puts_of_several_producers_do_not_conflict(broker, cluster):
    queues = [Queue(name="queue", url=broker.url) for _ in range(4)]
    for queue in queues:
        queue.put("first")
    before = cluster.counts.conflicts
    together(*[lambda queue=queue: [queue.put(number) for number in range(25)] for queue in queues])
    assert cluster.counts.conflicts == before
    assert queues[0].qsize() == 104


@pytest.fixture
def meanwhile(monkeypatch):
    """Make another thread call a function before the next transaction sets its first key."""
    set_key = FoundationTxn.set

    def arrange(function):
        def call_and_set(txn, key, value):
            monkeypatch.setattr(FoundationTxn, "set", set_key)
            Background(function).result()
            set_key(txn, key, value)

        monkeypatch.setattr(FoundationTxn, "set", call_and_set)

    yield arrange
    assert FoundationTxn.set is set_key


def test_a_get_does_not_conflict_with_the_renewal_of_the_lease_of_its_process(
    broker, cluster, meanwhile
):
    queue = JoinableQueue(name="queue", url=broker.url)
    queue.put_many(["first", "second"])
    queue.get()
    renewal = Renew(processes.incarnation(), True, False)
    meanwhile(lambda: queue._at.binding.session().call(renewal))
    before = cluster.counts.conflicts
    assert queue.get() == "second"
    assert cluster.counts.conflicts == before
    queue.task_done()
    queue.task_done()


def test_a_get_does_not_conflict_with_a_put(broker, cluster, meanwhile):
    queue = Queue(name="queue", url=broker.url)
    queue.put_many(["first", "second"])
    before = cluster.counts.conflicts
    meanwhile(lambda: Queue(name="queue", url=broker.url).put("third"))
    assert queue.get() == "first"
    assert cluster.counts.conflicts == before
    assert [queue.get() for _ in range(2)] == ["second", "third"]


def test_items_of_one_producer_come_in_the_order_of_their_puts(broker):
    queue = Queue(name="queue", url=broker.url)
    queue.put_many(list(range(300)))
    for number in range(300, 320):
        queue.put(number)
    assert [queue.get() for _ in range(320)] == list(range(320))


def test_a_bounded_queue_never_has_more_items_than_its_bound(broker):
    queues = [Queue(3, name="queue", url=broker.url) for _ in range(4)]
    got = []

    def take():
        while len(got) < 40:
            assert queues[0].qsize() <= 3
            try:
                got.append(queues[0].get(timeout=1))
            except Empty:
                return

    def put(queue):
        return lambda: [queue.put(number) for number in range(10)]

    together(take, *map(put, queues))
    assert Counter(got) == Counter(list(range(10)) * 4)


@pytest.mark.parametrize("size", [89_000, 200_000, 250_000, 700_000])
def test_items_of_every_size_are_kept_whole(broker, size):
    item = os.urandom(size)
    queue = JoinableQueue(name="queue", url=broker.url)
    queue.put(item)
    assert queue.get() == item
    queue.task_done()
    tasks = TaskQueue(name="tasks", url=broker.url)
    tasks.put(item)
    tasks.take().release()
    task = tasks.take()
    assert task.data == item
    task.ack()


def test_nothing_stays_of_large_items_that_were_got(broker, cluster):
    queue = Queue(name="queue", url=broker.url)
    queue.put("small")
    queue.get()

    def keys():
        return {key for key in cluster._keys if cluster._value(key, cluster.read_version())}

    before = keys()
    queue.put(b"x" * 200_000)
    assert len(keys()) > len(before)
    queue.get()
    assert keys() == before


def test_a_commit_whose_outcome_is_unknown_is_done_once(broker, cluster):
    cluster.faults = Faults(refused=0.05, never=0.05, done=0.05, late=0.03, too_old=0.05)
    queues = [JoinableQueue(name="queue", url=broker.url) for _ in range(4)]
    got = []

    def put(me):
        return lambda: [queues[me].put((me, number)) for number in range(40)]

    def take(me):
        def run():
            for _ in range(40):
                got.append(queues[me].get())
                queues[me].task_done()

        return run

    together(*map(put, (0, 1)), *map(take, (2, 3)))
    assert cluster.counts.unknown > 5
    assert Counter(got) == Counter((me, number) for me in (0, 1) for number in range(40))
    queues[0].join()
    assert queues[0].stats().consumed_messages == 80


@pytest.mark.parametrize("is_done", [True, False])
def test_an_item_goes_back_if_the_commit_of_its_get_is_interrupted(broker, monkeypatch, is_done):
    queue = Queue(name="queue", url=broker.url)
    queue.put_many(["first", "second"])
    ready = store.ready

    def interrupted(future):
        monkeypatch.setattr(store, "ready", ready)
        if is_done:
            ready(future)
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.get()
    assert [queue.get(), queue.get()] == ["first", "second"]
    assert queue.stats().consumed_messages == 2


def test_a_call_gives_up_when_the_cluster_does_not_answer_and_can_be_made_again(broker, cluster):
    queue = Queue(name="queue", url=broker.url, reconnect=0.2)
    queue.put("first")
    cluster.stop()
    with pytest.raises(BrokerUnavailable, match="did not answer in time"):
        queue.put("second")
    cluster.go_on()
    assert queue.get() == "first"


def test_a_get_that_a_cancelled_task_did_not_wait_for_is_undone_when_it_ends(
    broker, cluster, monkeypatch
):
    monkeypatch.setattr(cancelled_calls, "LAST_SECONDS", 0.05)
    queue = Queue(name="queue", url=broker.url)
    queue.put("item")

    async def main():
        queue = aio.Queue(name="queue", url=broker.url)
        assert await queue.qsize() == 1
        cluster.stop()
        getting = asyncio.ensure_future(queue.get())
        await asyncio.sleep(0.1)
        getting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await getting
        cluster.go_on()
        until(lambda: queue._at.binding.queue.space.store._free)  # its thread has made the call

    asyncio.run(main())
    assert queue.get(timeout=LIMIT) == "item"
    assert queue.qsize() == 0


PUT = """
import sys
from pressure_mp import Queue
Queue(name="queue", url=sys.argv[1]).put("item")
"""

HOLD = """
import sys
from pressure_mp import JoinableQueue
JoinableQueue(name="queue", url=sys.argv[1]).get()
print("got", flush=True)
sys.stdin.read()
"""


def test_another_process_wakes_one_that_waits(broker, monkeypatch):
    monkeypatch.setattr(session, "TICK", HOURS)
    waiting = Background(Queue(name="queue", url=broker.url).get)
    until(lambda: broker.cluster.watching())
    command = [sys.executable, "-c", PUT, broker.url]
    subprocess.run(command, check=True, env=started.environment())
    assert waiting.result() == "item"


def test_a_get_is_woken_also_when_the_reads_of_its_watch_fail(broker, cluster, monkeypatch):
    monkeypatch.setattr(session, "TICK", HOURS)
    queue = Queue(name="queue", url=broker.url)
    cluster.faults = Faults(too_old=0.3, lagging=0.3)
    for number in range(100):
        waiting = Background(Queue(name="queue", url=broker.url).get)
        until(cluster.watching)
        queue.put(number)
        assert waiting.result() == number
        until(lambda: not cluster.watching())


def test_an_item_of_a_process_that_was_killed_comes_again(broker):
    queue = JoinableQueue(name="queue", url=broker.url)
    queue.put("item")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, broker.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=started.environment(),
    )
    assert holder.stdout.readline() == b"got\n"
    holder.kill()
    holder.communicate()
    assert queue.get() == "item"
    queue.task_done()


def test_a_waiter_of_another_host_that_ended_loses_its_place_with_its_lease(broker, monkeypatch):
    monkeypatch.setattr(line, "_SHORTEST", 1)
    queue = Queue(name="queue", url=broker.url)
    assert queue.qsize() == 0
    gone = queue._at.binding.session()
    gone.lease = 300
    assert isinstance(gone.call(Take()), NoItem)
    monkeypatch.setattr(processes, "state", lambda id: "unknown")
    queue.put("item")
    assert queue.get(timeout=LIMIT) == "item"


def test_a_forked_child_of_a_process_that_used_a_queue_is_refused(broker):
    queue = Queue(name="queue", url=broker.url)
    queue.put("item")
    child = os.fork()
    if not child:
        try:
            queue.get()
        except NotSupportedError as error:
            os._exit(0 if "forked child" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert queue.get() == "item"


def test_a_lane_that_was_not_used_for_long_is_removed(broker, monkeypatch):
    def lanes(at):
        begin = at._lanes
        return at.write(
            lambda txn: [key for key, _ in txn.range(begin, begin + END, 9)], None, How()
        )

    first, second = (FoundationStore(broker.path("cluster"), "prefix") for _ in range(2))
    first.write(lambda txn: txn.set(b"key", b"value"), None, How())
    assert len(lanes(first)) == 1
    monkeypatch.setattr(store, "_OLD", -1)
    second.write(lambda txn: txn.set(b"key", b"value"), None, How())
    assert len({*lanes(first), *lanes(second)}) == 1
    first.write(lambda txn: txn.set(b"key", b"value"), None, How())
    assert len(lanes(first)) == 2


def test_many_large_items_are_put_and_got_in_several_transactions(broker):
    items = [bytes([number]) * 100_000 for number in range(150)]
    queue = Queue(name="queue", url=broker.url)
    queue.put_many(items)
    assert [queue.get() for _ in items] == items


def test_a_key_or_a_transaction_that_is_too_large_is_refused(broker):
    at = FoundationStore(broker.path("cluster"), "prefix")
    with pytest.raises(ItemTooLargeError, match="2101"):
        at.write(lambda txn: txn.set(b"key", bytes(11_000_000)), None, How())
    with pytest.raises(BrokerError, match=r"Key length exceeds limit \(2102\)"):
        at.write(lambda txn: txn.set(bytes(11_000), b""), None, How())


def test_a_url_names_a_cluster_file_by_an_absolute_path_or_none():
    four, three = (registry.parse(f"foundationdb:{slashes}etc/file") for slashes in ("////", "///"))
    assert four == three
    assert registry.parse("foundationdb://").place == ""
    for url in ("foundationdb://relative/path", "foundationdb:///folder/", "foundationdb:///f?a=1"):
        with pytest.raises(AddressError):
            registry.parse(url)


@pytest.mark.skipif(find_library("fdb_c") is not None, reason="the library is installed")
def test_where_the_library_is_missing_the_error_says_where_to_get_it(tmp_path):
    program = "from pressure_mp import Queue; Queue(name='queue', url='foundationdb://').put(1)"
    environment = {**os.environ, "PYTHONPATH": ""}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert "NotSupportedError" in found.stderr
    assert "foundationdb-clients" in found.stderr
