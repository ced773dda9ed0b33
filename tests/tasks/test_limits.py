"""A queue of tasks, or a tube of it, with a rate limit: takes get no more than it admits."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import threading
import time

import inside
import pytest
from engines import Can
from programs import tasks as programs
from tasks.life import check_stats
from tasks.takers import is_empty, parked, taken
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import ArgumentError, ArgumentTypeError, Empty, RateLimit, ShutDown, TaskQueue, aio
from pressure_mp.engines.requests.limits import Limit

#: Seconds: in which no test uses up a limit twice, and that pass soon.
LONG, SHORT = 3600, 0.25


@pytest.fixture
def queue(url, name):
    """A queue whose takers do not look again to keep their places."""
    queue = TaskQueue(name, url=url, lease=HOURS)
    yield queue
    queue.delete()


def check_windows(moments, number, per):
    """No more than so many are within a time, in milliseconds by the broker's clock."""
    moments = sorted(moments)
    for first, last in zip(moments, moments[number:], strict=False):
        assert last - first > per


def test_takes_get_no_more_than_the_limit_admits(queue):
    queue.limit(3, per=LONG)
    queue.put_many(range(10), tube="a")
    assert taken(queue, 2) == [0, 1]
    assert taken(queue, 5, tube="a") == [2]
    assert is_empty(queue)
    assert is_empty(queue, tube="a")
    (limit,) = queue.stats().limits
    assert (limit.number, limit.per, limit.tube, limit.used) == (3, LONG, None, 3)
    assert LONG - LIMIT < limit.left <= LONG
    queue.limit(5, per=LONG)  # what was got before counts
    assert taken(queue, 9) == [3, 4]
    queue.limit(None)
    assert queue.stats().limits == ()
    assert taken(queue, 9) == [5, 6, 7, 8, 9]
    check_stats(queue)


def test_a_limit_is_checked(queue):
    for wrong in (0, -1):
        with pytest.raises(ArgumentError):
            queue.limit(wrong)
    with pytest.raises(ArgumentError):
        queue.limit(1, per=0)
    with pytest.raises(ArgumentTypeError):
        queue.limit(1.5)
    assert queue.stats().limits == ()
    queue.limit(None, tube="a")
    queue.limit(7)
    assert queue.stats().limits == (RateLimit(7, 1.0, None, 0, 0.0),)


@pytest.mark.usefixtures("no_ticks", "no_looks")
@pytest.mark.parametrize("limited", [None, "a"])
@pytest.mark.parametrize("tube", [None, "a"])
def test_takers_that_wait_are_woken_when_the_limit_admits_a_task(tube, limited, queue):
    queue.limit(2, per=SHORT, tube=limited)
    takers = [parked(queue, tube=tube) for _ in range(5)]
    queue.put_many(range(5), tube="a")
    tasks = [taker.result() for taker in takers]
    assert sorted(task.data for task in tasks) == [*range(5)]
    check_windows([queue.peek(task.id).since * 1000 for task in tasks], 2, SHORT * 1000)


@pytest.mark.usefixtures("no_ticks", "no_looks")
@pytest.mark.parametrize("limited", [None, "a"])
def test_a_put_while_the_limit_is_used_up_is_taken_when_it_admits_a_task(limited, queue):
    queue.limit(1, per=SHORT, tube=limited)
    first, second = parked(queue), parked(queue)
    queue.put(1, tube="a")
    until(lambda: not (first.is_alive() and second.is_alive()))
    for number in range(2, 5):
        queue.put(number, tube="a")
    first.result(), second.result()
    assert queue.take(LIMIT).data == 3
    assert queue.take(LIMIT, tube="a").data == 4


@pytest.mark.usefixtures("no_ticks", "no_looks")
@pytest.mark.parametrize("limited", [None, "a"])
def test_a_taker_takes_the_place_of_one_that_waits_no_longer(limited, queue):
    queue.put_many([1, 2], tube="a")
    queue.limit(1, per=1, tube=limited)
    assert taken(queue, 1) == [1]
    leaving = Background(queue.take, 0.3)
    until(lambda: parks(leaving))
    staying = parked(queue)
    with pytest.raises(Empty):
        leaving.result()
    assert staying.result().data == 2


@pytest.mark.usefixtures("no_ticks", "no_looks")
@pytest.mark.parametrize("limited", [None, "a"])
def test_takers_that_wait_get_tasks_when_the_limit_is_removed(limited, queue):
    queue.limit(1, per=LONG, tube=limited)
    queue.put_many(range(4), tube="a")
    assert taken(queue, 4) == [0]
    takers = [parked(queue), parked(queue, tube="a"), parked(queue)]
    queue.limit(2, per=LONG, tube=limited)
    until(lambda: sum(taker.is_alive() for taker in takers) == 2)
    queue.limit(None, tube=limited)
    assert sorted(taker.result().data for taker in takers) == [1, 2, 3]


@pytest.mark.usefixtures("no_ticks", "no_looks")
@pytest.mark.parametrize("limited", [None, "a"])
def test_takers_that_wait_for_a_limit_make_no_calls_until_it_admits_a_task(limited, valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.limit(1, per=1.5, tube=limited)
    queue.put(0, tube="a")
    assert taken(queue, 1) == [0]
    queue.put(1, tube="a")
    takers = [parked(queue) for _ in range(4)]
    with valkey.client() as client:

        def calls():
            return client.info("commandstats")["cmdstat_evalsha"]["calls"]

        before = calls()
        for number in range(2, 22):
            queue.put(number, tube="a")
        assert all(taker.is_alive() for taker in takers)
        assert calls() - before == 20  # the puts
        until(lambda: sum(taker.is_alive() for taker in takers) <= 2)
        # Each delivery: the take of one taker, the take of the next one, which waits for its turn,
        # and perhaps two calls that pass the news to it.
        assert calls() - before <= 20 + 2 * 4 + 1
    queue.delete()


def test_a_take_that_does_not_wait_leaves_the_news_to_one_that_will(valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.limit(1, per=LONG)
    queue.put_many([1, 2])
    assert taken(queue, 1) == [1]
    with valkey.client() as client:
        sign = inside.binding(queue).key("wake")
        assert client.llen(sign) == 1
        assert is_empty(queue)
        assert client.llen(sign) == 1
    queue.delete()


def test_a_take_of_all_tubes_passes_by_a_tube_whose_limit_is_used_up(queue):
    queue.limit(3, per=LONG, tube="a")
    for number in range(0, 60, 3):
        queue.put_many([number, number + 1], tube="a")
        queue.put(number + 2, tube="b")
    assert taken(queue, 2) == [0, 1]
    assert taken(queue, 4) == [2, 3, 5, 8]
    assert is_empty(queue, tube="a")
    queue.put("first", tube="a", priority=-1)
    assert taken(queue, 1) == [11]
    assert queue.qsize("a") == 38
    queue.limit(5, per=LONG, tube="a")
    assert taken(queue, 3) == ["first", 4, 14]
    queue.put(60, tube="a")
    queue.limit(None, tube="a")
    others = [number for number in range(15, 61) if number % 3 != 2]
    rest = [6, 7, 9, 10, 12, 13, *others, *range(17, 60, 3)]
    found = []
    while len(found) < len(rest):
        found += taken(queue, 7)
    assert found == sorted(rest)
    check_stats(queue)


@pytest.mark.parametrize("size", [1, 4])
def test_tasks_that_a_limit_kept_have_their_old_places(size, queue):
    queue.limit(5, per=SHORT, tube="a")
    queue.put_many(range(10), tube="a")
    queue.put_many(range(10, 12))
    queue.put_many(range(12, 20), tube="a")
    found = []
    while len(found) < 20:
        found += [task.data for task in queue.take_many(size, timeout=LIMIT)]
    assert [number for number in found if number not in (10, 11)] == [*range(10), *range(12, 20)]
    assert {*found[5:7]} == {10, 11}
    check_stats(queue)


def test_the_limits_of_the_queue_and_of_tubes_all_hold(queue):
    queue.limit(4, per=LONG)
    queue.limit(1, per=LONG, tube="a")
    queue.limit(2, per=LONG, tube="b")
    queue.put_many(["a1", "a2"], tube="a")
    queue.put_many(["b1", "b2", "b3"], tube="b")
    queue.put_many(["c1", "c2", "c3"], tube="c")
    assert taken(queue, 9) == ["a1", "b1", "b2", "c1"]
    assert is_empty(queue, tube="c")
    queue.limit(None)
    assert is_empty(queue, tube="b")
    assert taken(queue, 9) == ["c2", "c3"]
    assert [limit.tube for limit in queue.stats().limits] == ["a", "b"]


def test_a_limited_tube_can_be_paused(queue):
    queue.limit(2, per=LONG, tube="a")
    queue.put_many(range(4), tube="a")
    assert taken(queue, 1) == [0]
    queue.pause("a")
    assert is_empty(queue)
    queue.limit(3, per=LONG, tube="a")
    assert is_empty(queue)
    queue.resume("a")
    assert taken(queue, 4) == [1, 2]
    queue.pause("a")
    queue.limit(None, tube="a")
    assert is_empty(queue)
    queue.resume("a")
    assert taken(queue, 4) == [3]
    assert queue.stats().paused_tubes == ()


def test_tasks_that_a_limit_keeps_waiting_can_be_changed(queue):
    queue.limit(1, per=LONG, tube="a")
    ids = [queue.put(number, tube="a") for number in range(6)]
    assert taken(queue, 9) == [0]
    assert is_empty(queue)
    queue.kill(ids[1])
    queue.move(ids[2], "b")
    queue.switch(ids[3], "B")
    queue.kick(ids[3])
    assert taken(queue, 5) == [2]
    assert sorted(task.data for task in queue.list("R", "a")) == [3, 4, 5]
    check_stats(queue)
    queue.limit(None, tube="a")
    assert sorted(taken(queue, 5)) == [3, 4, 5]


def test_keys_take_turns_in_a_limited_tube(url, name):
    queue = TaskQueue(name, url=url, per_key=1)
    queue.limit(3, per=LONG, tube="a")
    for key in "kl":
        queue.put_many([f"{key}1", f"{key}2"], tube="a", key=key)
    first, second = queue.take_many(5, timeout=0)
    assert [first.data, second.data] == ["k1", "l1"]
    first.ack(), second.ack()
    assert len(taken(queue, 5)) == 1
    assert is_empty(queue)
    queue.limit(None, tube="a")
    assert len(taken(queue, 5)) == 1
    check_stats(queue)
    queue.delete()


def test_each_key_has_a_limit_of_its_own(queue):
    queue.limit(2, per=LONG, each_key=True)
    queue.put_many(range(5), key="k")
    queue.put_many(range(5, 8), key="l")
    queue.put_many(range(8, 11))
    queue.put_many(range(11, 14), tube="a", key="k")
    assert sorted(taken(queue, 20)) == [0, 1, 5, 6, 8, 9, 10, 11, 12]
    assert is_empty(queue)
    assert is_empty(queue, tube="a")
    assert queue.stats().limits == (RateLimit(2, LONG, None, 0, 0.0, True),)
    queue.limit(3, per=LONG, tube="a", each_key=True)
    assert taken(queue, 20) == [13]
    queue.limit(None, each_key=True)
    assert sorted(taken(queue, 20)) == [2, 3, 4, 7]
    queue.put_many([1, 2], tube="a", key="k")
    assert is_empty(queue)
    queue.limit(None, tube="a", each_key=True)
    assert taken(queue, 20) == [1, 2]
    assert queue.stats().limits == ()
    check_stats(queue)


@pytest.mark.usefixtures("no_ticks", "no_looks")
@pytest.mark.parametrize("tube", [None, "a"])
def test_takers_that_wait_are_woken_when_the_limit_of_a_key_admits_a_task(tube, queue):
    queue.limit(1, per=SHORT, each_key=True)
    takers = [parked(queue, tube=tube) for _ in range(5)]
    queue.put_many(range(3), tube="a", key="k")
    queue.put_many(range(3, 5), tube="a", key="l")
    tasks = [taker.result() for taker in takers]
    assert sorted(task.data for task in tasks) == [*range(5)]
    for key in "kl":
        moments = [task.since * 1000 for task in tasks if task.key == key]
        check_windows(moments, 1, SHORT * 1000)


def test_a_key_whose_limit_is_used_up_keeps_its_order(queue):
    queue.limit(2, per=SHORT, each_key=True)
    queue.put_many(range(2, 6), key="k")
    assert taken(queue, 9) == [2, 3]
    queue.put(1, key="k", priority=-1)
    found = []
    while len(found) < 3:
        found += [task.data for task in queue.take_many(9, timeout=LIMIT)]
    assert found == [1, 4, 5]
    check_stats(queue)


def test_tasks_of_a_key_whose_limit_is_used_up_can_be_changed(queue):
    queue.limit(1, per=LONG, each_key=True)
    ids = [queue.put(number, key="k") for number in range(5)]
    assert taken(queue, 9) == [0]
    queue.kill(ids[1])
    queue.move(ids[2], "a")
    assert taken(queue, 9) == [2]
    queue.switch(ids[3], "B")
    queue.kick(ids[3])
    assert is_empty(queue)
    queue.kill(ids[3])
    queue.kill(ids[4])
    assert queue.qsize() == 0
    queue.put(5, key="k")
    assert is_empty(queue)
    queue.limit(None, each_key=True)
    assert taken(queue, 9) == [5]
    check_stats(queue)


@pytest.mark.usefixtures("no_ticks", "no_looks")
@pytest.mark.parametrize("limited", [None, "a"])
def test_a_queue_that_is_shut_down_is_served_as_its_limit_admits(limited, queue):
    queue.limit(1, per=LONG, tube=limited)
    queue.put_many(range(3), tube="a")
    assert taken(queue, 3) == [0]
    takers = [parked(queue) for _ in range(3)]
    queue.shutdown()
    assert is_empty(queue)
    assert all(taker.is_alive() for taker in takers)
    queue.limit(1, per=SHORT, tube=limited)
    served = [taker for taker in takers if not raises_shut_down(taker)]
    assert sorted(taker.result().data for taker in served) == [1, 2]


@pytest.mark.parametrize("limited", [None, "a"])
def test_a_limit_counts_what_was_taken_before_a_restart_of_the_broker(limited, durable, name):
    queue = TaskQueue(name, url=durable.url, reconnect=LIMIT)
    queue.limit(1, per=LONG, tube=limited)
    queue.put_many(range(3), tube="a")
    assert taken(queue, 3) == [0]
    takers = [parked(queue), parked(queue, tube="a")]
    durable.kill()
    durable.start()
    assert is_empty(queue)
    assert all(taker.is_alive() for taker in takers)
    queue.limit(3, per=LONG, tube=limited)
    assert sorted(taker.result().data for taker in takers) == [1, 2]
    queue.delete()


def raises_shut_down(taker):
    try:
        taker.result()
    except ShutDown:
        return True
    return False


def test_a_task_that_goes_back_counts_when_it_is_taken_again(queue):
    queue.limit(3, per=LONG)
    queue.put(1)
    for _ in range(3):
        queue.take(0).release()
    assert is_empty(queue)
    assert queue.qsize() == 1


def test_an_acknowledgment_with_the_next_take_is_done_while_the_limit_is_used_up(queue):
    queue.put_many([1, 2, 3])
    queue.limit(2, per=LONG)
    first, second = queue.take_many(2)
    with pytest.raises(Empty):
        queue.take(0, ack=first)
    assert first.state == "X"
    with pytest.raises(Empty):
        queue.take(0, ack=second)
    assert queue.stats().counts["R"] == 1


def test_no_time_has_more_deliveries_than_a_large_limit(queue):
    number, per = 600, 0.3
    queue.limit(number, per=per)
    queue.put_many(range(3000))
    moments = []
    while len(moments) < 3000:
        tasks = queue.take_many(random.randint(1, 90), timeout=LIMIT)
        moments += [tasks[0].since * 1000] * len(tasks)
    check_windows(moments, number, per * 1000)
    check_stats(queue)


def moments_at(server, queue, change):
    """Change the moments of the deliveries that a broker has noted; what it has then."""
    name = queue.name
    if hasattr(server, "execute"):
        (found,) = server.execute(f"SELECT id FROM pressure_mp.queues WHERE name = '{name}'")
        server.execute(
            f"UPDATE pressure_mp.limits SET moments = ARRAY(SELECT u + {change} FROM "
            f"unnest(moments) u) WHERE queue = {found[0]}"
        )
        return
    with server.client() as client:
        meta = inside.binding(queue).key("meta")
        log = client.hget(meta, "log ")
        numbers = [int.from_bytes(log[at : at + 8], "big") for at in range(0, len(log), 8)]
        numbers[::2] = [moment + change for moment in numbers[::2]]
        client.hset(meta, "log ", b"".join(number.to_bytes(8, "big") for number in numbers))


def test_deliveries_of_a_clock_that_was_set_back_count_from_now_on(any_server, name):
    queue = TaskQueue(name, url=any_server.url)
    queue.limit(2, per=0.3)
    queue.put_many(range(4))
    assert taken(queue, 4) == [0, 1]
    moments_at(any_server, queue, 3_600_000)
    assert is_empty(queue)
    assert 0 < queue.stats().limits[0].left <= 0.3
    assert queue.take(LIMIT).data == 2
    assert queue.take(LIMIT).data == 3
    queue.delete()


def test_the_rules_of_a_limit_hold_for_any_clock():
    draw = random.Random(3)
    for number, per in ((1, 1), (2, 10), (5, 100), (300, 1000), (1000, 50)):
        limit, now, moments = Limit(number, per), 0, []
        for _ in range(3000):
            if draw.random() < 0.01:  # the clock is set back
                check_windows(moments, number, per)
                before, now = now, now - draw.randrange(3 * per)
                moments = [min(moment, now) for moment in moments if moment >= before - per]
            else:
                now += draw.randrange(2 + 3 * per // number)
            until = limit.until(now)
            assert (until is None) == (limit.admits(now) > 0)
            assert until is None or now <= until <= now + per
            for _ in range(min(limit.admits(now), draw.randrange(4))):
                limit.note(now)
                moments.append(now)
            assert len(limit.log) <= min(number, 256) + 2
        check_windows(moments, number, per)


def test_why_blocked_says_which_limit_is_used_up(queue):
    queue.limit(2, per=LONG)
    queue.put_many(range(3), tube="a")
    assert "start a worker" in queue.why_blocked().sentence
    queue.take_many(2)
    found = queue.why_blocked()
    assert found.sentence.startswith(
        "No task can be taken: 1 task is ready, but a limit is used up: 2 in 3600 s (2 used"
    )
    queue.limit(None)
    queue.limit(1, per=LONG, tube="a")
    assert "start a worker" not in queue.why_blocked().sentence
    queue.put(1, tube="a", priority=-1)
    queue.take()
    found = queue.why_blocked()
    assert found.used_up == {"a": 1}
    assert "a limit is used up: 1 in 3600 s of tube 'a' (1 used" in found.sentence
    queue.put(1)
    assert "a limit is used up" not in queue.why_blocked().sentence


def test_a_limit_is_kept_while_the_broker_is_away(durable, name):
    queue = TaskQueue(name, url=durable.url, reconnect=30)
    queue.limit(2, per=LONG)
    queue.limit(1, per=LONG, tube="a")
    queue.put_many([1, 2], tube="a")
    queue.put_many([3, 4])
    assert taken(queue, 1) == [1]
    durable.kill()
    durable.start()
    until(lambda: answers(queue))
    assert taken(queue, 9) == [3]
    assert [(limit.tube, limit.used) for limit in queue.stats().limits] == [(None, 2), ("a", 1)]
    queue.delete()


def answers(queue):
    try:
        return queue.stats()
    except Exception:  # it is away
        return None


def test_takers_on_an_event_loop_wait_for_the_limit(url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:
            await queue.limit(2, per=SHORT)
            await queue.limit(1, per=SHORT, tube="a")
            await queue.put_many(range(3), tube="a")
            await queue.put_many(range(3, 6))
            tasks = await asyncio.gather(*(queue.take(LIMIT) for _ in range(6)))
            limits = (await queue.stats()).limits
            await queue.delete()
            return tasks, limits

    tasks, limits = asyncio.run(main())
    assert sorted(task.data for task in tasks) == [*range(6)]
    assert [limit.tube for limit in limits] == [None, "a"]
    check_windows([task.since * 1000 for task in tasks], 2, SHORT * 1000)
    in_tube = [task.since * 1000 for task in tasks if task.tube]
    check_windows(in_tube, 1, SHORT * 1000)


@pytest.mark.timeout(180)
@pytest.mark.needs(Can.PROCESSES)
def test_worker_processes_together_get_what_the_limit_admits(queue):
    queue.limit(100, per=1)
    queue.put_many(range(1000))
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=programs.take_all, args=(queue,)) for _ in range(8)]
    for worker in workers:
        worker.start()
    until(lambda: queue.stats().counts["T"] > 150)
    workers[0].kill()
    until(lambda: queue.stats().counts["T"] >= 350)
    # A task that comes or goes meanwhile may be listed twice, or not.
    moments = {task.id: task.since * 1000 for task in queue.list("T", limit=1000)}
    for worker in workers:
        worker.kill()
        worker.join()
    assert len(moments) >= 250
    check_windows(moments.values(), 100, 1000)


def test_limits_at_any_time_lose_no_task_and_give_none_twice(queue):
    seen, stop = [], threading.Event()
    running = Background(queue.run, lambda task: seen.append(task.data), concurrency=3, stop=stop)
    draw = random.Random(7)
    for number in range(100):
        tube = draw.choice([None, "a", "b"])
        if draw.random() < 0.2:
            (queue.pause if draw.random() < 0.5 else queue.resume)(tube)
        else:
            queue.limit(draw.choice([None, 1, 5, 400]), per=0.02, tube=tube)
        tube = draw.choice([None, "a", "b"])
        queue.put_many(range(5 * number, 5 * number + 5), tube=tube, key=draw.choice([None, "k"]))
    for tube in (None, "a", "b"):
        queue.resume(tube)
        queue.limit(50, per=0.02, tube=tube)
    until(lambda: len(seen) >= 500)
    stop.set()
    running.result()
    assert sorted(seen) == list(range(500))
    check_stats(queue)


def test_a_key_goes_on_whose_deliveries_are_past_while_as_many_are_taken_as_may_be(url, name):
    queue = TaskQueue(name, url=url, per_key=1)
    queue.limit(300, per=0.001, each_key=True)
    queue.put_many([1, 2], key="a")
    first = queue.take()
    time.sleep(0.01)
    queue.put(3, key="a")
    first.ack()
    assert queue.take(LIMIT).data == 2
    queue.delete()
