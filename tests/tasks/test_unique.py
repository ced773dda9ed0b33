"""Tasks with a unique key: of each key one task is put at a time."""

from __future__ import annotations

import asyncio
import multiprocessing
import time

import pytest
from brokers.lossy import LossyProxy
from engines import Can
from programs import tasks as programs
from waiting import HOURS, LIMIT, until

from pressure_mp import ArgumentError, ArgumentTypeError, Empty, TaskExists, TaskQueue, aio

PUTTERS, PUTS = 16, 1000


@pytest.fixture
def queue(url, name):
    queue = TaskQueue(name, url=url, ttr=HOURS)
    yield queue
    queue.delete()


def put(queue, data, **options):
    return queue.put(data, unique="key", **options)


def is_free(queue):
    """Whether another task can be put; it is not left there."""
    try:
        queue.kill(put(queue, "another", on_conflict="error"))
    except TaskExists:
        return False
    return True


def replaced(queue, data, **options):
    return put(queue, data, on_conflict="replace", **options)


def test_a_task_is_not_put_while_another_has_its_key(queue):
    id = put(queue, "first", delay=HOURS)
    assert queue.peek(id).unique == "key"
    assert put(queue, "second") == id
    queue.restart(id)
    assert put(queue, "second") == id
    task = queue.take(0)
    assert put(queue, "second") == id
    assert queue.put("other", unique="another key") != id
    with pytest.raises(TaskExists, match=r"unique key") as caught:
        put(queue, "second", on_conflict="error")
    assert (caught.value.task_id, caught.value.state) == (id, "T")
    task.ack()
    assert put(queue, "second") != id
    assert [task.data for task in queue.list("R")] == ["other", "second"]


def test_a_put_replaces_a_task_that_no_worker_has_taken(queue):
    id = put(queue, "first", tube="a")
    queue.put("urgent", priority=-1)
    assert replaced(queue, "second", delay=HOURS) == id
    assert queue.peek(id).state == "W"
    assert replaced(queue, "third", priority=-2, tube="b") == id
    task = queue.take(0)
    assert (task.id, task.data, task.tube, task.priority) == (id, "third", "b", -2)
    task.ack()
    assert queue.take(0).data == "urgent"
    with pytest.raises(Empty):
        queue.take(0)


def test_the_same_in_asyncio(url, name):
    async def main():
        async with aio.TaskQueue(name, url=url, ttr=HOURS) as queue:
            id = await queue.put("first", unique="key")
            assert await queue.put("second", unique="key") == id
            assert await queue.put("third", unique="key", on_conflict="replace") == id
            with pytest.raises(TaskExists):
                await queue.put("fourth", unique="key", on_conflict="error")
            task = await queue.take(0)
            assert (task.data, task.unique) == ("third", "key")
            await task.ack()
            assert await queue.put("fifth", unique="key", for_=HOURS) != id
            await queue.delete()

    asyncio.run(main())


def test_a_put_replaces_no_taken_task_and_at_most_one_task_waits_behind_it(queue):
    put(queue, "first")
    running = queue.take(0)
    waiting = replaced(queue, "second")
    assert waiting != running.id
    assert replaced(queue, "third") == put(queue, "fourth") == waiting
    assert running.data == queue.peek(running.id).data == "first"
    running.ack()
    assert put(queue, "fourth") == waiting
    task = queue.take(0)
    assert task.data == "third"
    task.ack()
    assert is_free(queue)


def ack(queue, id):
    queue.take(0).ack()


def bury(queue, id):
    queue.take(0).bury()


def expire(queue, id):
    replaced(queue, "data", ttl=0.001)
    time.sleep(0.003)


ENDS = {
    "ack": ack,
    "ack_many": lambda queue, id: queue.ack_many(queue.take_many(2, 0)),
    "next": lambda queue, id: queue.take(0, ack=queue.take(0)),
    "bury": bury,
    "expire": expire,
    "kill": lambda queue, id: queue.kill(id),
    "truncate": lambda queue, id: queue.truncate(),
    "switch": lambda queue, id: queue.switch(id, "D"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("options", [{}, {"zombie": True}, {"keep": True}])
def test_the_key_is_free_as_soon_as_its_task_has_ended(end, options, url, name):
    with TaskQueue(name, url=url, **options) as queue:
        id = put(queue, "data")
        queue.put("next")
        assert not is_free(queue)
        ENDS[end](queue, id)
        assert is_free(queue)
        queue.delete()


def test_a_queue_that_is_deleted_leaves_no_key(queue, url):
    put(queue, "data", for_=HOURS)
    queue.delete()
    TaskQueue.create(queue.name, url=url)
    assert is_free(queue)


@pytest.mark.parametrize("stays", [False, True])
def test_the_key_stays_for_a_time_after_the_put(stays, queue):
    queue.configure(zombie=stays or None)
    state = "Z" if stays else "X"
    id = put(queue, "data", for_=HOURS)
    queue.take(0).ack()
    assert put(queue, "another") == replaced(queue, "another") == id
    with pytest.raises(TaskExists, match="unique key") as caught:
        put(queue, "another", on_conflict="error")
    assert (caught.value.task_id, caught.value.state) == (id, state)
    assert queue.qsize() == 0
    queue.put("data", unique="short", for_=0.001)
    queue.take(0).ack()
    time.sleep(0.003)
    assert queue.peek(queue.put("more", unique="short", on_conflict="error")).data == "more"


@pytest.mark.parametrize("is_free_meanwhile", [True, False])
def test_a_buried_task_that_is_kicked_has_its_key_if_no_other_has_it(is_free_meanwhile, queue):
    id = put(queue, "first")
    queue.take(0).bury()
    other = None if is_free_meanwhile else put(queue, "second")
    queue.kick(id)
    assert put(queue, "third") == (other or id)
    if other:
        queue.kill(other)
        assert is_free(queue)


def test_a_released_task_keeps_its_key(queue):
    id = put(queue, "first")
    queue.take(0).release(delay=HOURS)
    assert put(queue, "second") == id


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"unique": 1}, ArgumentTypeError),
        ({"unique": ""}, ArgumentError),
        ({"unique": "key", "on_conflict": "ignore"}, ArgumentError),
        ({"unique": "key", "on_conflict": "replace", "for_": 1}, ArgumentError),
        ({"unique": "key", "for_": 0}, ArgumentError),
        ({"unique": "key", "wait": 1}, ArgumentError),
        ({"unique": "key", "connection": object()}, ArgumentError),
        ({"on_conflict": "replace"}, ArgumentError),
        ({"for_": 1}, ArgumentError),
    ],
)
def test_options_that_make_no_sense_together_are_refused(options, error, queue):
    with pytest.raises(error):
        queue.put("data", **options)
    assert queue.qsize() == 0


def replaced_many(queue, data, unique, **options):
    return queue.put_many(data, unique=unique, on_conflict="replace", **options)


def test_tasks_of_a_batch_are_put_unless_another_has_their_key(queue):
    there = put(queue, "there", delay=HOURS)
    ids = queue.put_many("abcde", unique=["key", "a", None, "a", None], delay=HOURS)
    assert ids[0] == there
    assert ids[1] == ids[3]
    assert len({*ids}) == 4
    assert [task.data for task in queue.list()] == ["there", "b", "c", "e"]
    assert [queue.peek(id).unique for id in ids] == ["key", "a", None, "a", None]
    assert queue.put_many("xyz", unique=["a", "key", "new"], delay=HOURS)[:2] == [ids[1], there]
    assert queue.stats().counts["W"] == 5


def test_tasks_of_a_batch_replace_others_and_each_other(queue):
    running = queue.put("running", unique="a")
    queue.take(0)
    waiting = put(queue, "waiting", delay=HOURS)
    ids = replaced_many(queue, "bcdef", ["b", "key", "a", "b", "a"], tube="t", priority=2)
    assert ids[1] == waiting
    assert ids[0] == ids[3]
    assert ids[2] == ids[4] != running
    found = {task.id: (task.data, task.tube, task.priority) for task in queue.list("R")}
    assert found == {waiting: ("c", "t", 2), ids[0]: ("e", "t", 2), ids[2]: ("f", "t", 2)}
    assert queue.peek(running).data == "running"
    again = replaced_many(queue, "gh", ["b", "key"], delay=HOURS)
    assert again == [ids[0], waiting]
    assert [queue.peek(id).data for id in again] == ["g", "h"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_batch_stops_at_the_first_task_whose_key_is_held(is_there, queue):
    there = put(queue, "there") if is_there else None
    queue.put_many([b""] * 1000)
    unique = [*map(str, range(1500)), "key" if is_there else "1200", "last"]
    with pytest.raises(TaskExists, match="unique key") as caught:
        queue.put_many(range(1502), unique=unique, on_conflict="error")
    error = caught.value
    assert error.accepted == (1000 if is_there else 1500)
    assert error.rest == [*range(error.accepted, 1502)]
    there = there or queue.put("another", unique="1200")
    assert (error.task_id, error.state) == (there, "R")
    assert queue.qsize() == 1000 + is_there + error.accepted


def test_a_batch_that_is_refused_because_of_an_id_replaces_nothing(queue):
    put(queue, "first", id="a")
    queue.put("other", id="b")
    with pytest.raises(TaskExists, match="there is one already"):
        replaced_many(queue, ["second", "third"], ["key", "new"], ids=["c", "b"])
    assert [task.data for task in queue.list()] == ["first", "other"]
    assert queue.put("third", unique="new", id="d") == "d"


def test_keys_of_a_batch_stay_for_a_time(queue):
    ids = queue.put_many("ab", unique=["a", "b"], for_=HOURS)
    for _ in ids:
        queue.take(0).ack()
    assert queue.put_many("cde", unique=["b", "a", "c"])[:2] == ids[::-1]
    assert [task.data for task in queue.list()] == ["e"]


def test_batches_in_asyncio(url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:
            ids = await queue.put_many("aba", unique=["a", "b", "a"])
            assert ids[0] == ids[2] != ids[1]
            with pytest.raises(TaskExists):
                await queue.put_many("a", unique=["a"], on_conflict="error")
            assert [task.data for task in await queue.list()] == ["a", "b"]
            await queue.delete()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"unique": "ab"}, ArgumentTypeError),
        ({"unique": ["a"]}, ArgumentError),
        ({"unique": ["a", 1]}, ArgumentTypeError),
        ({"unique": ["a", "b"], "connection": object()}, ArgumentError),
        ({"on_conflict": "replace"}, ArgumentError),
    ],
)
def test_unique_texts_that_do_not_fit_a_batch_are_refused(options, error, queue):
    with pytest.raises(error) as caught:
        queue.put_many([1, 2], **options)
    assert caught.value.rest == [1, 2]
    assert queue.qsize() == 0


def put_often(queue, barrier, connection):
    barrier.wait()
    connection.send({queue.put("data", unique="key") for _ in range(PUTS // PUTTERS + 1)})


@pytest.mark.needs(Can.PROCESSES)
def test_many_puts_of_many_processes_make_one_task(queue):
    context = multiprocessing.get_context("fork")
    barrier, (ours, theirs) = context.Barrier(PUTTERS), context.Pipe(False)
    processes = [
        context.Process(target=put_often, args=(queue, barrier, theirs)) for _ in range(PUTTERS)
    ]
    for process in processes:
        process.start()
    ids = set.union(*(ours.recv() for _ in processes))
    for process in processes:
        process.join()
    assert [task.id for task in queue.list()] == list(ids)
    assert queue.stats().transitions == {"X-R": 1}


def test_a_task_of_a_killed_worker_keeps_its_key_until_it_is_processed(any_server, name):
    with TaskQueue(name, url=any_server.url, lease=HOURS) as queue:
        id = put(queue, "data")
        process = multiprocessing.get_context("spawn").Process(
            target=programs.take_and_wait, args=(queue,)
        )
        process.start()
        until(lambda: queue.stats().counts["T"] == 1)
        process.kill()
        process.join()
        assert put(queue, "another") == id
        task = queue.take(60)
        assert (task.id, put(queue, "another")) == (id, id)
        task.ack()
        assert is_free(queue)
        queue.delete()


def test_keys_are_held_while_the_broker_is_away(durable, name):
    queue = TaskQueue(name, url=durable.url, ttr=HOURS, reconnect=LIMIT)
    unique = ["ended", "kept", "taken", "ready", "waiting"]
    queue.put_many(unique[:1], unique=unique[:1])
    queue.put_many(unique[1:2], unique=unique[1:2], for_=HOURS)
    queue.put_many(unique[2:4], unique=unique[2:4])
    there = queue.put_many(unique[4:], unique=unique[4:], delay=HOURS)
    ended, kept, taken = queue.take_many(3)
    queue.ack_many([ended, kept])
    (ready,) = queue.list("R")
    durable.kill()
    durable.start()
    holders = [kept.id, taken.id, ready.id, *there]
    made, *ids = queue.put_many(range(5), unique=unique)
    assert ids == holders
    assert made != ended.id
    taken.ack()
    queue.kill(ready.id)
    assert queue.put_many("ab", unique=["taken", "ready"]) != holders[1:3]
    assert [task.data for task in queue.list()] == [0, "a", "b", "waiting"]
    queue.delete()


@pytest.fixture
def proxy(broker):
    proxy = LossyProxy(broker.port)
    yield proxy
    proxy.stop()


@pytest.mark.parametrize("how", ["skip", "replace"])
def test_a_batch_whose_reply_is_lost_is_put_once(how, broker, proxy, name):
    lossy = TaskQueue(name, url=broker.url_at(proxy.port), ttr=HOURS)
    queue = TaskQueue(name, url=broker.url, ttr=HOURS)
    there = put(queue, "first")
    queue.take(0)
    lossy.qsize()
    proxy.lose(2)
    ids = lossy.put_many("abc", unique=["key", "b", None], on_conflict=how)
    assert proxy.lost == 2
    assert (ids[0] == there) == (how == "skip")
    assert [task.id for task in queue.list("R")] == (ids[1:] if how == "skip" else ids)
    queue.delete()


@pytest.mark.parametrize("how", ["skip", "error", "replace"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_put_whose_reply_is_lost_is_done_once(how, is_first, broker, proxy, name):
    lossy = TaskQueue(name, url=broker.url_at(proxy.port), ttr=HOURS)
    queue = TaskQueue(name, url=broker.url, ttr=HOURS)
    queue.qsize()
    lossy.qsize()
    id = None if is_first else put(queue, "first")
    if not is_first and how == "replace":
        queue.take(0)
    proxy.lose(2)
    if not is_first and how == "error":
        with pytest.raises(TaskExists):
            put(lossy, "second", on_conflict=how)
        made = id
    else:
        made = put(lossy, "second", on_conflict=how)
    assert proxy.lost == 2
    assert [task.id for task in queue.list("R")] == [made]
    assert (made == id) == (not is_first and how != "replace")
    queue.delete()


def test_nothing_stays_at_the_broker_of_keys_whose_tasks_have_ended(broker, name):
    queue = TaskQueue(name, url=broker.url)
    for end in ENDS.values():
        id = put(queue, "data")
        queue.put("next")
        end(queue, id)
        queue.truncate()
    assert not any(broker.results(name))
    put(queue, "data", for_=0.001)
    queue.take(0).ack()

    def is_gone():
        queue.qsize()  # the next call removes keys whose time is over
        return not any(broker.results(name))

    until(is_gone)
    queue.delete()
