"""What producers and workers see of a queue of tasks, on every engine."""

from __future__ import annotations

import os
import pickle
import signal
import time
import uuid
from contextlib import suppress

import inside
import pytest
from tasks import backoffs
from tasks.life import check_stats
from waiting import Background, until

from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    DecodingError,
    Empty,
    ExponentialBackoff,
    HandleClosedError,
    LifoQueue,
    NotOwner,
    NotTaken,
    Queue,
    QueueAlreadyExistsError,
    QueueDoesNotExistError,
    QueueMismatchError,
    QueueMismatchWarning,
    RejectedItemWarning,
    ShutDown,
    TaskExists,
    TaskNotFound,
    TaskQueue,
)
from pressure_mp.effects import Operation
from pressure_mp.engines.contract.items import MOST_ITEMS


def fail():
    raise ZeroDivisionError("division by zero")


def test_a_task_is_put_taken_and_acknowledged(queue):
    id = queue.put({"a": [1]}, tube="thumbs", priority=2.5)
    assert isinstance(id, int)
    task = queue.take(0, ttr=60)
    assert (task.id, task.data, task.state, task.tube) == (id, {"a": [1]}, "T", "thumbs")
    assert (task.priority, task.deliveries, task.error) == (2.5, 1, None)
    assert abs(task.created - time.time()) < 60
    assert task.since >= task.created
    assert task.due == pytest.approx(task.since + 60, abs=1)
    assert f"/{os.getpid()}/" in task.owner
    task.ack()
    assert task.state == "X"
    assert queue.stats().counts == {"R": 0, "W": 0, "T": 0, "B": 0, "Z": 0, "D": 0}
    assert queue.stats().transitions == {"X-R": 1, "R-T": 1, "T-X": 1}
    with pytest.raises(Empty, match="has no task that is ready"):
        queue.take(0)


def test_the_lowest_priority_is_first_then_the_one_that_was_put_first(queue):
    for number, priority in enumerate([0, 5, -1, 0, float("inf"), -0.5, 2**40, -(2**40)]):
        queue.put(number, priority=priority)
    first = queue.take(0)
    assert first.data == 7
    first.release()  # it keeps its place
    assert [queue.take(0).data for _ in range(8)] == [7, 2, 5, 0, 3, 1, 6, 4]


def test_a_take_of_a_tube_takes_from_it_and_one_without_from_all(queue):
    for number, tube in enumerate(["a", "b", None, "a", "ab"]):
        queue.put(number, tube=tube)
    assert queue.take(0, tube="a").data == 0
    assert queue.take(0, tube="ab").data == 4
    assert [task.data for task in queue.take_many(10)] == [1, 2, 3]
    with pytest.raises(Empty, match="tube 'a'"):
        queue.take(0, tube="a")


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("auto_increment", lambda ids: ids == [1, 2, 3]),
        ("time64", lambda ids: sorted(set(ids)) == ids and ids[0] > 2**50),
        ("uuid", lambda ids: len({uuid.UUID(id) for id in ids}) == 3),
        (uuid.uuid4().hex[:8].__str__, lambda ids: len(ids) == 1),
    ],
)
def test_ids_are_made_as_asked_for(kind, check, url, name):
    queue = TaskQueue(name, url=url, id=kind)
    ids = [queue.put("data")]
    if callable(kind):
        with pytest.raises(TaskExists):
            queue.put("data")
    else:
        ids += queue.put_many(["data"] * 2)
    assert check(ids)
    assert [queue.peek(id).id for id in ids] == ids
    queue.delete()


def test_an_id_can_be_required_and_a_taken_one_is_an_error(url, name):
    queue = TaskQueue(name, url=url, id="required")
    with pytest.raises(ArgumentTypeError, match="needs an id"):
        queue.put("data")
    for id in (1, "1", "'1", -7, "é x"):
        assert queue.put(id, id=id) == id
        assert queue.peek(id).data == id
    with pytest.raises(TaskExists, match=r"task '1' .* is ready \(R\)") as caught:
        queue.put("data", id="1")
    assert (caught.value.task_id, caught.value.state) == ("1", "R")
    with pytest.raises(TaskExists) as caught:
        queue.put_many("abc", ids=[8, 9, 8])
    assert (caught.value.accepted, caught.value.rest) == (0, ["a", "b", "c"])
    assert queue.stats().counts["R"] == 5
    queue.delete()


def test_generated_ids_pass_over_those_that_are_taken(url, name):
    queue = TaskQueue(name, url=url, id="auto_increment")
    queue.put("data", id=2)
    assert queue.put_many(range(3)) == [1, 3, 4]
    queue.delete()


def test_many_tasks_are_put_taken_and_acknowledged_at_once(queue):
    ids = queue.put_many(range(2500), tube="t")
    assert len(set(ids)) == 2500
    taken = []
    while len(taken) < 2500:
        taken += queue.take_many(2500)
    assert [task.data for task in taken] == list(range(2500))
    taken[5].ack()
    taken[6].bury()
    with pytest.raises(TaskNotFound) as caught:
        queue.ack_many([*taken, taken[7]])
    assert caught.value.accepted == 2498
    assert caught.value.rest == [taken[5], taken[6], taken[7]]
    assert taken[8].state == "X"
    assert queue.stats().counts == {"R": 0, "W": 0, "T": 0, "B": 1, "Z": 0, "D": 0}


def test_a_take_of_many_stops_at_about_a_megabyte(queue):
    queue.put_many([b"x" * 300_000] * 10)
    assert len(queue.take_many(10)) == 3
    queue.put(b"x" * 3_000_000, priority=-1)
    assert len(queue.take_many(10)) == 1


@pytest.mark.parametrize("tube", [None, "thumbs"])
def test_a_take_acknowledges_the_task_before(tube, queue):
    queue.put_many([1, 2, 3], tube=tube)
    first = queue.take(0)
    second = queue.take(0, ack=first)
    assert (first.state, second.state, second.data) == ("X", "T", 2)
    assert first.due is None
    assert first.since >= second.created
    third = queue.take(0, tube=tube, ack=second)
    with pytest.raises(Empty):
        queue.take(0, ack=third)
    assert third.state == "X"
    assert queue.stats().transitions == {"X-R": 3, "R-T": 3, "T-X": 3}


def test_a_take_whose_acknowledgement_is_refused_takes_nothing(queue):
    queue.put_many([1, 2])
    first = queue.take(0)
    queue.snatch(first.id)
    with pytest.raises(NotTaken, match="ack is for a task that is taken"):
        queue.take(0, ack=first)
    assert queue.stats().counts["R"] == 2
    queue.kill(first.id)
    with pytest.raises(TaskNotFound):
        queue.take(0, ack=first)
    assert queue.take(0, ack=None).data == 2
    with pytest.raises(ArgumentTypeError, match="ack is a task that was taken"):
        queue.take(0, ack=first.id)


@pytest.mark.parametrize(
    "wrong",
    [{"timeout": float("nan")}, {"timeout": "1"}, {"ttr": 0}, {"tube": ""}, {"on_error": "x"}],
    ids=str,
)
def test_a_take_that_makes_no_sense_acknowledges_nothing(wrong, queue):
    queue.put(1)
    task = queue.take(0)
    with pytest.raises(ArgumentError if wrong != {"timeout": "1"} else ArgumentTypeError):
        queue.take(**wrong, ack=task)
    assert task.state == queue.peek(task.id).state == "T"


@pytest.mark.parametrize(("kept", "state"), [({"keep": True}, "D"), ({"zombie": 60}, "Z")])
def test_a_take_keeps_the_task_that_it_acknowledges_as_the_queue_wants(kept, state, url, name):
    with TaskQueue(name, url=url, **kept) as queue:
        queue.put_many([1, 2])
        first = queue.take(0)
        second = queue.take(0, ack=first)
        assert (first.state, queue.peek(first.id).state, second.state) == (state, state, "T")
        queue.delete()


def test_the_last_task_is_acknowledged_when_the_queue_is_shut_down(queue):
    queue.put(1)
    task = queue.take(0)
    queue.shutdown()
    with pytest.raises(ShutDown):
        queue.take(ack=task)
    assert task.state == "X"


def test_a_task_that_cannot_be_decoded_is_buried_and_the_task_before_acknowledged(url, name):
    queue = TaskQueue(name, url=url, serializer="raw")
    queue.put_many([b"1", b"not a pickle"])
    with TaskQueue.attach(name, url=url, serializer="pickle") as reader:
        first = queue.take(0)
        with pytest.raises(DecodingError):
            reader.take(0, ack=first)
        assert first.state == "X"
        assert queue.stats().counts["B"] == 1
    queue.delete()


def test_a_block_acknowledges_at_its_end(queue):
    queue.put(1)
    with queue.take(0) as task:
        assert queue.peek(task.id).state == "T"
    with pytest.raises(TaskNotFound):
        queue.peek(task.id)
    queue.put(2)
    with queue.take(0) as task:
        task.bury(error="by hand")
    assert queue.peek(task.id).error == "by hand"


def test_a_block_that_raises_releases_or_buries_with_the_error(queue):
    id = queue.put(1)
    with pytest.raises(ZeroDivisionError), queue.take(0, backoff=0):
        fail()
    task = queue.take(0, on_error="bury")
    assert (task.deliveries, task.error) == (2, "ZeroDivisionError: division by zero")
    with pytest.raises(KeyError), task:
        {}["nothing"]
    assert (queue.peek(id).state, queue.peek(id).error) == ("B", "KeyError: 'nothing'")
    queue.kick_many()
    with (
        pytest.raises(ZeroDivisionError),
        queue.take(0, backoff=lambda deliveries: 60 * deliveries),
    ):
        fail()
    task = queue.peek(id)
    assert task.state == "W"
    assert task.due == pytest.approx(task.since + 60, abs=0.5)
    with pytest.raises(ArgumentError, match="on_error"):
        queue.take(0, on_error="ignore")
    with pytest.raises(ArgumentError, match="backoff"):
        queue.take(0, on_error="bury", backoff=1)


@pytest.mark.parametrize("backoff", backoffs.WRONG)
def test_a_block_raises_its_own_error_also_where_its_backoff_fails(queue, backoff, monkeypatch):
    backoffs.have_long_default(monkeypatch)
    id = queue.put(1)
    with pytest.raises(ZeroDivisionError), queue.take(0, backoff=backoff):
        fail()
    task = queue.peek(id)
    assert backoffs.is_default(task)
    assert task.error == "ZeroDivisionError: division by zero"


def test_the_error_of_a_signal_handler_comes_through_a_backoff(queue):
    def handler(number, frame):
        raise TimeoutError

    queue.put(1)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError), queue.take(0, backoff=raise_signal):
            fail()
    finally:
        signal.signal(signal.SIGUSR1, before)


def raise_signal(deliveries):
    signal.raise_signal(signal.SIGUSR1)
    return 0


def test_a_task_that_fails_waits_longer_each_time_where_nothing_is_said(queue):
    id = queue.put(1)
    for least, most in ((1, 1.5), (2, 3), (4, 6)):
        with pytest.raises(ZeroDivisionError), queue.take(0):
            fail()
        task = queue.peek(id)
        assert task.state == "W"
        assert least - 0.01 <= task.due - task.since <= most + 0.01
        queue.restart(id)


def test_a_task_is_buried_after_20_deliveries_where_nothing_is_said(queue):
    queue.put(1)
    for delivery in range(1, 21):
        task = queue.take(0)
        assert task.deliveries == delivery
        task.release()
    assert queue.stats().counts["B"] == 1


def test_a_take_that_is_undone_is_no_delivery(queue):
    """As when its caller was interrupted: no handler had the task."""
    queue.put(1)
    here = queue._at.here
    for _ in range(30):
        task = queue.take(0)
        assert task.deliveries == 1
        here.lease.try_now(here.requeue_of(task.call))
    assert queue.stats().transitions["T-R"] == 30


def test_without_a_limit_a_task_is_delivered_as_often_as_it_fails(url, name):
    queue = TaskQueue(name, url=url, max_deliveries=None)
    queue.put(1)
    for _ in range(30):
        queue.take(0).release()
    assert queue.take(0).deliveries == 31
    queue.delete()


def test_waits_of_an_exponential_backoff_are_drawn_between_its_bounds():
    backoff = ExponentialBackoff(2, 90)
    for deliveries, least, most in (
        (1, 2, 3),
        (2, 4, 6),
        (5, 32, 48),
        (6, 60, 90),
        (10_000, 60, 90),
    ):
        drawn = [backoff(deliveries) for _ in range(200)]
        assert least <= min(drawn) < max(drawn) <= most


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((0,), ArgumentError), ((-1,), ArgumentError), ((2, 2.9), ArgumentError), (("1",), TypeError)],
)
def test_an_exponential_backoff_needs_bounds_to_draw_between(arguments, error):
    with pytest.raises(error):
        ExponentialBackoff(*arguments)


def test_an_interrupted_block_gives_the_task_back_at_once(queue):
    queue.put(1)
    with pytest.raises(KeyboardInterrupt), queue.take(0, on_error="bury"):
        raise KeyboardInterrupt
    assert queue.take(0).error is None


def test_the_end_of_a_block_raises_when_its_task_was_lost(queue):
    queue.put(1)
    task = queue.take(0)
    queue.snatch(task.id)
    other = queue.take(0)
    with pytest.raises(NotOwner, match="ack is for its owner"), task:
        pass
    assert queue.peek(other.id).state == "T"
    with pytest.raises(ZeroDivisionError), task:
        fail()
    other.ack()


def test_data_is_changed_in_the_same_step(queue):
    id = queue.put(1)
    task = queue.take(0)
    task.touch(update=lambda data: data + 1)
    assert (task.data, queue.peek(id).data) == (2, 2)
    task.release(update=None)
    assert queue.take(0).data is None
    assert queue.release(id, update=[3]).data == [3]
    queue.take(0)
    assert queue.bury(id, update=lambda data: [*data, 4]).data == [3, 4]
    assert queue.kick(id, update=5).data == 5
    queue.take(0)
    assert queue.ack(id, update=6).data == 6
    id = queue.put(1)
    queue.take(0)
    changes = iter([lambda: queue.touch(id, update=10), lambda: None])

    def add_one(data):
        next(changes)()  # another call changes it at the first time
        return data + 1

    assert queue.release(id, update=add_one).data == 11


def test_a_task_can_go_on_in_another_tube_and_with_another_priority(queue):
    queue.put(1, tube="a")
    queue.put(2, tube="a")
    task = queue.take(0)
    task.release(tube="b", priority=7)
    assert (task.state, task.tube, task.priority, task.owner) == ("R", "b", 7, None)
    assert queue.take(0).data == 2
    stats = queue.stats()
    assert stats.tubes["a"].transitions == {"X-R": 2, "R-T": 2, "T-S": 1}
    assert stats.tubes["b"].transitions == {"S-R": 1}
    assert stats.transitions == {"X-R": 2, "R-T": 2, "T-R": 1}
    assert stats.tubes["b"].words["ready"] == 1


def test_a_processed_task_is_kept_as_done_or_for_some_time_as_a_zombie(url, name):
    done = TaskQueue(name + "d", url=url, keep=True)
    done.put(1)
    task = done.take(0)
    task.ack()
    assert (task.state, done.peek(task.id).state) == ("D", "D")
    zombies = TaskQueue(name + "z", url=url, zombie=60)
    zombies.put(1)
    zombies.put(2)
    first, second = zombies.take_many(2)
    first.ack(delay=0.001)
    second.ack()
    time.sleep(0.01)
    assert [task.id for task in zombies.list("zombie")] == [second.id]
    assert zombies.peek(second.id).due == pytest.approx(zombies.peek(second.id).since + 60, abs=1)
    done.put(2)
    assert done.ack(done.take(0), delay=0.001).due is None
    assert done.stats().counts["D"] == 2
    done.delete()
    zombies.delete()


def test_a_poisonous_task_is_buried_with_the_last_error(url, name):
    queue = TaskQueue(name, url=url, max_deliveries=2)
    queue.put("poison")
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot"), queue.take(0, backoff=0):
            raise ValueError("cannot")
    (task,) = queue.list("buried")
    assert (task.deliveries, task.error) == (2, "ValueError: cannot")
    assert queue.kick_many() == 1
    assert queue.take(0, ttr=0.001).deliveries == 1
    time.sleep(0.01)
    assert queue.take(0, ttr=0.001).error == "it was not processed within its ttr"
    time.sleep(0.01)
    assert queue.peek(task.id).state == "B"
    queue.delete()


def test_a_task_that_cannot_be_decoded_is_buried(url, name):
    raw = TaskQueue(name, url=url, serializer="raw")
    raw.put(b"not a pickle")
    queue = TaskQueue(name, url=url)
    with pytest.raises(DecodingError):
        queue.take(0)
    raw.put(b"not a pickle")
    queue.put("good")
    with pytest.warns(RejectedItemWarning) as caught:
        (task,) = queue.take_many(10)
    assert caught[0].filename == __file__
    assert task.data == "good"
    assert [task.error[:14] for task in raw.list("B")] == ["DecodingError:"] * 2
    queue.delete()


def test_times_and_options_that_make_no_sense_are_refused(queue, url, name):
    for wrong in (
        {"delay": 1, "ttl": 1},
        {"delay": -1},
        {"ttl": 0},
        {"priority": float("nan")},
        {"priority": 2**60 + 1},
        {"tube": ""},
        {"tube": "a\0b"},
        {"id": ""},
    ):
        with pytest.raises(ArgumentError):
            queue.put("data", **wrong)
    for wrong in ({"delay": "1"}, {"priority": "high"}, {"tube": 1}, {"id": 1.5}):
        with pytest.raises(ArgumentTypeError):
            queue.put("data", **wrong)
    for wrong in ({"delay": -1}, {"ids": [1, 2]}, {"ids": [""]}):
        with pytest.raises(ArgumentError) as caught:
            queue.put_many(["data"], **wrong)
        assert (caught.value.accepted, caught.value.rest) == (0, ["data"])
    for wrong in ({"keep": True, "zombie": 1}, {"id": "other"}, {"ttr": 0}, {"max_deliveries": 0}):
        with pytest.raises(ArgumentError):
            TaskQueue(name, url=url, **wrong)
    assert queue.stats().transitions == {}


def test_the_options_are_the_queues_and_need_not_be_repeated(url, name):
    queue = TaskQueue.create(name, url=url, ttr=5, keep=True)
    with pytest.raises(QueueAlreadyExistsError, match=r"exists already, with ttr=5\.0"):
        TaskQueue.create(name, url=url)
    attached = TaskQueue(name, url=url)
    assert attached.settings == TaskQueue.attach(name, url=url).settings == queue.settings
    assert TaskQueue(name, url=url, ttr=5.0, keep=True).settings == queue.settings
    queue.delete()
    with pytest.raises(QueueDoesNotExistError):
        attached.put(1)
    with pytest.raises(QueueDoesNotExistError):
        TaskQueue.attach(name, url=url)


@pytest.mark.parametrize("how", [TaskQueue, TaskQueue.attach])
@pytest.mark.parametrize(
    ("stated", "text"),
    [
        ({"ttr": 60.0}, r"with ttr=5\.0, not ttr=60\.0"),
        ({"ttr": None, "keep": True}, r"with ttr=5\.0, not ttr=None"),
        ({"ttl": 1}, "with ttl=None, not ttl=1"),
        ({"keep": False}, "with keep=True, not keep=False"),
        ({"zombie": True}, "with zombie=None, not zombie=True"),
        ({"max_deliveries": 3}, "with max_deliveries=20, not max_deliveries=3"),
        ({"id": "uuid"}, "with id='time64', not id='uuid'"),
        ({"id": int}, "with id='time64', not id='callable'"),
    ],
    ids=str,
)
def test_a_stated_option_that_differs_is_a_mismatch_that_shows_it(how, stated, text, url, name):
    queue = TaskQueue.create(name, url=url, ttr=5, keep=True)
    with pytest.raises(QueueMismatchError, match=rf"^queue '{name}' exists {text}(\.0)?$"):
        how(name, url=url, strict=True, **stated).open()
    with pytest.warns(
        QueueMismatchWarning, match=rf"^queue '{name}' exists {text}(\.0)?: its own"
    ) as told:
        assert how(name, url=url, **stated).settings == queue.settings
    assert told[0].filename == __file__
    queue.delete()


def test_options_of_a_queue_change_while_others_use_it(url, name):
    queue, other = TaskQueue(name, url=url), TaskQueue(name, url=url)
    ids = other.put_many("abcd")
    queue.configure(ttr=3600, max_deliveries=1)
    assert queue.settings == TaskQueue(name, url=url).settings
    assert str(queue.settings).startswith("ttr=3600.0, ttl=None, zombie=None, keep=False, max_del")
    assert queue.settings.max_deliveries == 1
    task = other.take(0)
    assert task.due == pytest.approx(task.since + 3600, abs=0.1)
    task.release()
    assert other.peek(ids[0]).state == "B"
    queue.configure(max_deliveries=None, zombie=True)
    other.take(0).release()
    task = other.take(0)
    assert task.deliveries == 2
    task.ack()
    assert other.peek(ids[1]).state == "Z"
    queue.configure(zombie=None, keep=True, ttr=None)
    task = other.take(0)
    assert task.due is None
    task.ack()
    assert other.peek(ids[2]).state == "D"
    queue.configure(ttl=0.001)
    other.take(0).release()
    until(lambda: other.qsize() == 0)
    queue.delete()


def test_options_that_exclude_each_other_change_nothing(queue):
    queue.configure(keep=True)
    with pytest.raises(ArgumentError, match="keep and zombie"):
        queue.configure(zombie=5)
    with pytest.raises(ArgumentError, match="max_deliveries"):
        queue.configure(max_deliveries=0)
    assert queue.settings.keep
    assert queue.settings.zombie == 0


def test_changes_of_several_programs_at_a_time_are_all_done(url, name):
    queue = TaskQueue(name, url=url)
    names = {"ttr": 5, "ttl": 6, "zombie": 7, "max_deliveries": 8}
    for _ in range(10):
        queue.configure(**dict.fromkeys(names))
        changing = [
            Background(TaskQueue(name, url=url).configure, **{option: value})
            for option, value in names.items()
        ]
        for change in changing:
            change.result()
        found = TaskQueue(name, url=url).settings
        assert {option: found.stated()[option] for option in names} == names
    queue.delete()


def test_a_queue_is_created_with_the_usual_options_where_none_are_stated(url, name):
    queue = TaskQueue(name, url=url)
    usual = "ttr=None, ttl=None, zombie=None, keep=False, max_deliveries=20, id='time64'"
    usual += ", per_key=None, maxsize=0"
    assert str(queue.settings) == usual
    queue.delete()


def test_zombies_of_a_queue_without_a_time_for_them_stay_until_they_are_removed(url, name):
    queue = TaskQueue(name, url=url, zombie=True)
    ids = queue.put_many(range(6), tube="a")
    first, *others = queue.take_many(4)
    assert queue.take(0, ack=first).data == 4
    queue.ack_many(others)
    queue.ack(queue.take(0), delay=3600)
    zombies = queue.list("zombie")
    assert [task.id for task in zombies] == [ids[5], *ids[:4]]
    assert [task.due is None for task in zombies] == [False, True, True, True, True]
    assert queue.wait(ids[0], 0)[0].state == "Z"
    queue.kill(ids[0])
    assert queue.restart(ids[1]).state == "R"
    assert queue.switch(ids[1], "Z").due is None
    assert queue.move(ids[2], "b").state == "Z"
    assert check_stats(queue).words["zombie"] == 4
    assert queue.truncate() == 5
    queue.delete()


def test_touch_lets_a_ready_task_live_for_longer(url, name):
    queue = TaskQueue(name, url=url, ttl=3600)
    id = queue.put(1, tube="a")
    ready = queue.peek(id)
    touched = queue.touch(id, 60)
    assert touched.state == "R"
    assert touched.due == pytest.approx(ready.due + 60)
    ready.touch(40, update=lambda data: data + 1)
    assert (ready.state, ready.data) == ("R", 2)
    assert ready.due == pytest.approx(touched.due + 40)
    assert queue.touch(id).due == pytest.approx(ready.due)  # that is later than its ttl from now
    other = queue.put(2, ttl=0.001 * 60_000)
    assert queue.touch(other).due >= queue.peek(other).since + 3600
    check_stats(queue)
    queue.delete()


def test_a_ready_task_is_gone_when_the_time_that_it_was_touched_for_is_over(url, name):
    queue = TaskQueue(name, url=url)
    id = queue.put(1, ttl=2.0)
    end = queue.touch(id, 0.2).due
    until(lambda: queue.qsize() == 0)
    assert queue.stats().now >= end
    queue.delete()


def test_a_ready_task_without_a_ttl_is_not_changed_by_a_touch(queue):
    id = queue.put(1)
    assert queue.touch(id, 60).due is None
    assert queue.take(0).data == 1


def test_touch_raises_for_a_ready_task_that_was_lost(queue):
    queue.put(1)
    task = queue.take(0)
    queue.snatch(task.id)
    with pytest.raises(NotTaken, match="touch is for a task that is taken, or ready with a ttl"):
        task.touch()
    with pytest.raises(NotTaken):
        queue.touch(task.id)


def test_a_released_task_is_ready_for_the_worker_that_released_it_too(queue):
    queue.put(1)
    task = queue.take(0)
    task.release(ttl=3600)
    before = task.due
    task.touch(60)
    assert task.due == pytest.approx(before + 60)


def test_a_task_can_be_buried_for_a_time(queue):
    ids = queue.put_many(range(3))
    first, second, third = queue.take_many(3)
    first.bury(ttl=0.01, error="not now")
    second.bury(ttl=3600)
    assert queue.bury(third).due is None
    assert second.due == pytest.approx(second.since + 3600)
    until(lambda: len(queue.list("B")) == 2)
    assert queue.stats().transitions["B-X"] == 1
    with pytest.raises(TaskNotFound):
        queue.kick(ids[0])
    assert queue.kick_many() == 2
    assert queue.peek(ids[1]).due is None  # its ttl was for as long as it is buried
    with pytest.raises(ArgumentError, match="ttl is 0 s"):
        queue.take(0).bury(ttl=0)
    check_stats(queue)


def test_a_kick_passes_over_buried_tasks_whose_time_is_over(queue):
    queue.put_many(range(300))
    for task in queue.take_many(250):
        task.bury(ttl=0.001)
    for task in queue.take_many(50):
        task.bury()
    time.sleep(0.01)
    assert queue.kick_many(10) == 10
    check_stats(queue)
    assert queue.kick_many() == 40
    assert queue.qsize() == 50


def test_the_size_of_a_queue_of_tasks_is_how_many_are_ready(queue):
    queue.put_many(range(3), tube="a")
    queue.put_many(range(2), tube="ab")
    queue.put(1)
    queue.put(1, delay=3600)
    queue.take(0, tube="ab")
    queue.take(0).bury()
    assert (queue.qsize(), queue.qsize("a"), queue.qsize("ab"), queue.qsize("b")) == (4, 2, 1, 0)
    with pytest.raises(ArgumentTypeError):
        queue.qsize(1)


@pytest.mark.parametrize("kind", [Queue, LifoQueue])
def test_a_name_has_a_queue_of_one_kind(kind, url, name):
    tasks = TaskQueue.create(name, url=url)
    with pytest.raises(QueueMismatchError, match="exists with discipline tasks"):
        kind(name=name, url=url).open()
    tasks.delete()
    other = kind(name=name, url=url)
    other.open()
    with pytest.raises(QueueMismatchError, match="not tasks"):
        TaskQueue(name, url=url).open()
    other.delete()


def test_a_queue_that_is_shut_down_accepts_no_puts_and_gives_its_ready_tasks(queue):
    queue.put_many([1, 2])
    task = queue.take(0)
    assert not queue.is_shutdown
    queue.shutdown()
    assert queue.is_shutdown
    with pytest.raises(ShutDown):
        queue.put(3)
    assert queue.take().data == 2
    with pytest.raises(ShutDown):
        queue.take()
    task.release()
    assert queue.take(0).data == 1


def test_a_closed_handle_goes_on_with_what_was_taken(url, name):
    with TaskQueue(name, url=url) as queue:
        queue.put(1)
        task = queue.take(0)
    with pytest.raises(HandleClosedError):
        queue.put(2)
    with pytest.raises(HandleClosedError):
        queue.take(0)
    task.ack()
    queue.delete()


def test_a_handle_can_be_pickled(queue):
    queue.put(1)
    copy = pickle.loads(pickle.dumps(queue))
    task = copy.take(0)
    queue.ack(task.id)  # the process has it, through whichever handle
    with pytest.raises(TaskNotFound):
        task.ack()


def test_administrators_look_at_tasks_in_their_order(queue):
    late = queue.put("late", delay=7200)
    soon = queue.put("soon", delay=3600, tube="a")
    ready = queue.put_many(range(3), tube="a", priority=1)
    urgent = queue.put("urgent")
    assert [task.id for task in queue.list("R")] == [urgent, *ready]
    assert [task.id for task in queue.list("waiting")] == [soon, late]
    assert [task.id for task in queue.list(tube="a")] == [*ready, soon]
    assert [task.id for task in queue.list("R", "a", limit=2)] == ready[:2]
    assert len(queue.list()) == 6
    with pytest.raises(ArgumentError, match="is not a state"):
        queue.list("asleep")
    assert queue.truncate() == 6
    assert queue.list() == []
    assert queue.stats().transitions == {"X-W": 2, "X-R": 4, "W-X": 2, "R-X": 4}


def test_the_oldest_buried_tasks_are_kicked_first(queue):
    ids = queue.put_many(range(4))
    for task in queue.take_many(4):
        task.bury()
        time.sleep(0.002)
    assert queue.kick_many(2) == 2
    assert [task.id for task in queue.list("R")] == ids[:2]
    assert queue.kick(ids[3], delay=60).state == "W"
    assert queue.kick_many() == 1
    with pytest.raises(ArgumentTypeError, match="limit is an int or None, not float"):
        queue.kick_many(1.5)
    with pytest.raises(ArgumentError, match="limit is 0 or more, not -1"):
        queue.kick_many(-1)


def test_tasks_that_are_buried_again_meanwhile_are_not_kicked_again(queue):
    queue.put_many(range(MOST_ITEMS))
    bury_all(queue)

    def kick() -> Operation[int]:
        kicking, replies = inside.operations(queue).kick_many(None, 0, None), []
        request = next(kicking)
        while True:
            replies.append((yield request))
            assert len(replies) < 4, "it kicks what was buried again"
            bury_all(queue)
            try:
                request = kicking.send(replies[-1])
            except StopIteration as ended:
                return ended.value

    assert inside.run(queue, kick()) == MOST_ITEMS
    assert queue.stats().counts["B"] == MOST_ITEMS


def bury_all(queue):
    with suppress(Empty):
        while True:
            for task in queue.take_many(MOST_ITEMS, 0):
                task.bury()


def test_stats_tell_ages_rates_and_deliveries(queue):
    assert queue.stats().oldest_ready_age is None
    for priority in (3, 1, 2):
        queue.put(priority, priority=priority)
        time.sleep(0.005)
    queue.take(0).release(priority=9)
    stats = queue.stats()
    assert stats.oldest_ready_age >= 0.015
    assert stats.deliveries == 1
    assert stats.rates["X-R"] > 0
    assert stats.rates_since(None)["X-R"] == 3 / (stats.now - stats.created)
    assert queue.stats().rates["X-R"] == 0
    queue.put(1)
    assert queue.stats().rates["X-R"] > 0
    assert queue.stats().as_dict(words=True)["transition"]["ready-taken"] == 1
    assert queue.stats().as_dict()["counts"]["R"] == 4


def test_an_administrator_takes_a_task_from_its_owner(queue):
    queue.put(1)
    task = queue.take(0)
    assert queue.snatch(task.id, delay=60).state == "W"
    with pytest.raises(NotTaken, match=r"is waiting \(W\)"):
        task.touch()
    assert queue.restart(task.id).state == "R"
    assert queue.switch(task.id, "done").state == "D"
    assert queue.restart(task.id, delay=5).state == "W"
    for wrong in (("T", None), ("W", None), ("Z", None), ("R", 5)):
        with pytest.raises(ArgumentError):
            queue.switch(task.id, wrong[0], delay=wrong[1])
