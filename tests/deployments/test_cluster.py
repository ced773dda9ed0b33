"""A queue of a cluster is at one node; it is found there, and found again when it has moved."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
from urllib.parse import quote

import contents
import inside
import pytest
from brokers import rights
from brokers.deployments import clustered
from ports import free_port
from programs import deliveries as programs
from redis.crc import key_slot
from waiting import LIMIT, Background, until

import pressure_mp
from pressure_mp import (
    ArgumentError,
    FairQueue,
    JoinableQueue,
    PressureQueue,
    Queue,
    QueueMismatchError,
    TaskQueue,
)
from pressure_mp.drivers import adrive
from pressure_mp.encoding.large import CHUNK


@pytest.fixture(scope="module")
def cluster():
    """Three primaries."""
    with clustered("redis", 3, 0) as found:
        yield found


@pytest.fixture
def tagged(name):
    """A name with a hash tag."""
    return f"{{{name}}}"


def slot_of(queue):
    return key_slot(queue.name.encode())


def another(cluster, queue):
    """A primary that does not have the queue."""
    return next(s for s in cluster.servers if s is not cluster.owner(slot_of(queue)))


def test_the_queues_of_every_node_are_listed(cluster, name):
    names = {f"{{{name}-{number}}}" for number in range(20)}
    queues = [Queue.create(one, url=cluster.url, prefix=name) for one in names]
    assert len({cluster.owner(slot_of(queue)).port for queue in queues}) == 3
    found = pressure_mp.list_queues(url=cluster.url, prefix=name)
    assert {(one.name, one.discipline) for one in found} == {(one, "fifo") for one in names}


def test_queues_are_spread_over_the_nodes(cluster, name):
    queues = [Queue(2, f"{{{name}-{number}}}", url=cluster.url) for number in range(20)]
    for number, queue in enumerate(queues):
        queue.put(number)
        with cluster.owner(slot_of(queue)).client() as client:
            assert client.llen(f"__pressure__:{queue.name}") == 1
    assert {cluster.owner(slot_of(queue)).port for queue in queues} == {
        server.port for server in cluster.servers
    }
    assert [pickle.loads(pickle.dumps(queue)).get() for queue in queues] == list(range(20))
    for queue in queues:
        queue.delete()


def test_a_large_item_follows_a_slot_that_moves_between_its_chunks(cluster, tagged):
    with Queue(name=tagged, url=cluster.url) as q:

        def move(number):
            if number == 3:
                cluster.move(slot_of(q), another(cluster, q))

        item = bytes(6 * CHUNK)
        with contents.before_each_chunk(move):
            q.put(item)
            assert q.get() == item
        assert q.stats().produced_messages == q.stats().consumed_messages == 1
        q.delete()


@pytest.mark.parametrize("name", ["jobs", "{jobs", "jobs}", "{}", "{}{jobs}"])
def test_a_name_without_a_hash_tag_is_refused_with_advice(cluster, name):
    with pytest.raises(pressure_mp.ArgumentError, match=r"has no hash tag.*call it '\{"):
        Queue(name=name, url=cluster.url).open()
    with pytest.raises(pressure_mp.ArgumentError, match="has no hash tag"):
        PressureQueue(name, url=cluster.url).create()


def test_a_hash_tag_in_the_prefix_serves_every_name(cluster, name):
    q = Queue(name=name, url=cluster.url, prefix="{app}")
    q.put(1)
    assert q.get() == 1
    q.delete()


@pytest.mark.parametrize("name", ["plain", "{", "half}", "{whole}"])
def test_queues_of_other_orders_need_no_hash_tag(cluster, name):
    fair = FairQueue(len, name=name, url=cluster.url)
    fair.put("aa")
    assert fair.keys() == [2]
    assert fair.get() == "aa"
    fair.delete()


def test_a_name_is_of_one_kind_also_where_the_kinds_are_in_different_slots(cluster, tagged):
    queue = Queue(name=tagged, url=cluster.url)
    queue.open()
    with pytest.raises(QueueMismatchError, match="discipline fifo, not fair"):
        FairQueue(len, name=tagged, url=cluster.url).open()
    queue.delete()
    fair = FairQueue(len, name=tagged, url=cluster.url)
    fair.open()
    with pytest.raises(QueueMismatchError, match="discipline fair, not fifo"):
        Queue(name=tagged, url=cluster.url).open()
    fair.delete()


def test_an_anonymous_queue_leaves_nothing_behind(cluster):
    with Queue(url=cluster.url) as q:
        q.put(1)
        assert q.get() == 1
    for server in cluster.servers:
        with server.client() as client:
            assert not list(client.scan_iter(match=f"*{q.name}*"))


def test_an_asyncio_task_finds_the_node_and_follows_the_slot(cluster, tagged):
    q = PressureQueue(tagged, url=cluster.url)
    q.create()
    binding = inside.bind(q)

    async def work():
        for item in (b"1", b"2"):
            await adrive(inside.operations(q).put(item, True, None), binding.asession())
            cluster.move(slot_of(q), another(cluster, q))
        return [
            await adrive(inside.operations(q).get(True, None), binding.asession()) for _ in "12"
        ]

    assert asyncio.run(work()) == [b"1", b"2"]
    q.delete()


@pytest.mark.parametrize("reconnect", [0, 10])
def test_operations_follow_a_slot_that_moved(cluster, tagged, reconnect):
    q = Queue(name=tagged, url=cluster.url, reconnect=reconnect)
    for number in range(6):
        q.put(number)
        cluster.move(slot_of(q), another(cluster, q))
    assert [q.get() for _ in range(6)] == list(range(6))
    q.delete()


def test_items_in_flight_move_with_their_queue_and_come_back(cluster, tagged):
    q = JoinableQueue(name=tagged, url=cluster.url, lease=1)
    for number in range(3):
        q.put(number)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    consumer = context.Process(target=programs.get_and_wait, args=(there, q, 2))
    consumer.start()
    assert here.recv() == [0, 1]
    cluster.move(slot_of(q), another(cluster, q))
    assert q.stats().in_flight == 2
    consumer.kill()
    consumer.join()
    assert sorted(q.get(timeout=LIMIT) for _ in range(3)) == [0, 1, 2]
    for _ in range(3):
        q.task_done()
    q.join()
    q.delete()


def test_waiting_calls_follow_a_slot_that_moved(cluster, tagged):
    q = Queue(1, tagged, url=cluster.url)
    source = cluster.owner(slot_of(q))
    with source.client() as client:
        getting = [Background(q.get) for _ in range(3)]
        until(lambda: client.info("clients")["blocked_clients"] == 3)
    cluster.move(slot_of(q), another(cluster, q))
    for item in "abc":
        q.put(item)
    assert sorted(get.result() for get in getting) == list("abc")
    q.put("full")
    with cluster.owner(slot_of(q)).client() as client:
        putting = Background(q.put, "last")
        until(lambda: client.info("clients")["blocked_clients"] == 1)
    cluster.move(slot_of(q), source)
    assert q.get() == "full"
    putting.result()
    assert q.get() == "last"
    q.delete()


def test_tasks_and_workers_follow_a_slot_that_moved(cluster, name):
    tasks = TaskQueue(name, url=cluster.url)
    (first,) = tasks.put_many(["first"])
    task = tasks.take()
    cluster.move(slot_of(tasks), another(cluster, tasks))
    task.ack()
    with pytest.raises(pressure_mp.TaskNotFound):
        tasks.peek(first)
    with cluster.owner(slot_of(tasks)).client() as client:
        taking = Background(tasks.take)
        until(lambda: client.info("clients")["blocked_clients"] == 1)
    cluster.move(slot_of(tasks), another(cluster, tasks))
    second = tasks.put("second")
    task = taking.result()
    assert (task.id, task.data) == (second, "second")
    task.release(delay=0.05)
    assert tasks.take(timeout=LIMIT).deliveries == 2
    assert tasks.stats().counts == {**dict.fromkeys("RWBZD", 0), "T": 1}
    tasks.delete()


def test_a_delivery_is_forwarded_within_a_slot_and_not_beyond(cluster, name):
    at = {"url": cluster.url, "prefix": f"{{{name}}}"}
    tasks, items = TaskQueue("tasks", **at), JoinableQueue(1, name="items", **at)
    elsewhere = Queue(name="{other}", url=cluster.url)
    tasks.put("data")
    task = tasks.take(LIMIT)
    with pytest.raises(ArgumentError, match="different hash slots"):
        task.forward(elsewhere, "item")
    task.forward(items, "item")
    slot = key_slot(name.encode())
    cluster.move(slot, next(one for one in cluster.servers if one is not cluster.owner(slot)))
    assert items.get() == "item"
    items.forward(tasks, "data")
    assert tasks.take(LIMIT).data == "data"
    items.join()


def test_operations_wait_while_a_slot_is_being_moved(cluster, tagged):
    q = Queue(name=tagged, url=cluster.url)
    q.put("first")
    target = another(cluster, q)
    with cluster.moving(slot_of(q), target):
        putting = Background(q.put, "second")
        with pytest.raises(pressure_mp.BrokerUnavailable, match=r"TRYAGAIN|ASK"):
            Queue.attach(tagged, url=cluster.url, reconnect=0).put("never")
        assert putting.is_alive()
    putting.result()
    assert [q.get(), q.get()] == ["first", "second"]
    q.delete()


def test_nodes_that_do_not_answer_are_passed_over(cluster, tagged):
    url = f"redis+cluster://127.0.0.1:{free_port()},127.0.0.1:{cluster.servers[1].port}"
    q = Queue(name=tagged, url=url)
    q.put(1)
    assert q.get() == 1
    q.delete()


def test_no_node_at_all_is_broker_unavailable_and_names_them(tagged):
    port = free_port()
    with pytest.raises(pressure_mp.BrokerUnavailable, match=f"says where to go.*:{port}"):
        Queue(name=tagged, url=f"redis+cluster://127.0.0.1:{port}", reconnect=0).open()


def test_the_documents_user_needs_one_right_more(cluster, tagged):
    user = tagged.strip("{}")
    url = cluster.url.replace("//", f"//{user}:{quote(rights.PASSWORD)}@")
    for server in cluster.servers:
        with server.client() as client:
            rights.make_user(client, user)
    with pytest.raises(pressure_mp.BrokerUnavailable, match=r"no slots.*cluster\|slots"):
        Queue(name=tagged, url=url).open()
    for server in cluster.servers:
        with server.client() as client:
            client.execute_command("ACL", "SETUSER", user, "+cluster|slots")
    q = Queue(name=tagged, url=url)
    q.open()
    q.put(1)
    assert q.get() == 1
    q.delete()
    for server in cluster.servers:
        with server.client() as client:
            client.execute_command("ACL", "DELUSER", user)


def test_a_server_that_is_no_cluster_says_so(debian_redis, tagged):
    url = debian_redis.url.replace("redis:", "redis+cluster:")
    with pytest.raises(pressure_mp.BrokerUnavailable, match="cluster support disabled"):
        Queue(name=tagged, url=url).open()


def test_a_node_of_a_cluster_is_no_broker_by_itself(cluster, name):
    for wrong in (name, f"{{{name}}}"):
        q = PressureQueue(wrong, url=another(cluster, PressureQueue(wrong, url="memory://")).url)
        with pytest.raises(pressure_mp.BrokerError, match=r"node of a cluster: use redis\+clu"):
            q.create()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis+cluster://", "names no host"),
        ("redis+cluster://localhost/3", "database 3; a cluster has database 0 only"),
        ("redis+cluster://u:secret@localhost:x", "…@localhost:x' cannot be read"),
    ],
)
def test_a_bad_url_is_an_address_error(url, message):
    with pytest.raises(pressure_mp.AddressError, match=message):
        Queue(url=url)
