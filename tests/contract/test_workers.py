"""Handlers that are run on tasks: what every engine and server does, in threads of one process."""

from __future__ import annotations

import logging
import pickle
import threading
import time

import pytest
from engines import Can
from tasks import backoffs
from waiting import LIMIT, Background, until

from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    DecodingError,
    HandleClosedError,
    NotTaken,
    QueueDoesNotExistError,
    TaskQueue,
)

LOGGER = "pressure_mp"


@pytest.fixture
def make(url, name):
    def make(**options):
        return TaskQueue(name, url=url, **options)

    return make


class Running:
    """A run in the background; it ends with the block."""

    def __init__(self, queue, handler=None, **options):
        self.stop = threading.Event()
        self.thread = Background(queue.run, handler, stop=self.stop, **options)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.stop.set()
        self.thread.join(LIMIT)
        assert not self.thread.is_alive()
        if exc_info[0] is None:
            self.thread.result()


def counts(queue):
    return {state: number for state, number in queue.stats().counts.items() if number}


def finished(queue, number):
    return lambda: queue.stats().transitions.get("T-X", 0) == number


# The states of a task after its handler


def test_a_task_is_acknowledged_when_its_handler_returns(make):
    queue = make()
    seen = []
    queue.put_many(["a", "b", "c"])
    with Running(queue, lambda task: seen.append(task.data)):
        until(finished(queue, 3))
    assert seen == ["a", "b", "c"]
    assert counts(queue) == {}


def test_handlers_work_at_the_same_time(make):
    queue = make()
    queue.put_many(range(3))
    together = threading.Barrier(3)
    with Running(queue, lambda task: together.wait(LIMIT), concurrency=3):
        until(finished(queue, 3))


def test_a_task_that_fails_is_released_with_its_error_and_logged(make, caplog):
    queue = make()
    task_id = queue.put("a")
    errors = []

    def handler(task):
        errors.append(task.error)
        if task.deliveries == 1:
            raise ValueError("not yet")

    with Running(queue, handler):
        until(finished(queue, 1))
    assert errors == [None, "ValueError: not yet"]
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert record.name == LOGGER
    assert record.exc_info[1].args == ("not yet",)
    assert repr(task_id) in record.getMessage()


def test_a_task_that_fails_waits_for_its_backoff(make):
    queue = make()
    queue.put("a")
    asked = []

    def backoff(deliveries):
        asked.append(deliveries)
        return 0.01 if deliveries < 3 else 3600

    with Running(queue, lambda task: 1 / 0, backoff=backoff):
        until(lambda: len(asked) == 3)
        until(lambda: counts(queue) == {"W": 1})
    assert asked == [1, 2, 3]


def test_a_task_that_fails_is_buried_if_so_said(make):
    queue = make()
    queue.put("a")
    with Running(queue, lambda task: 1 / 0, on_error="bury"):
        until(lambda: counts(queue) == {"B": 1})
    assert queue.list("buried")[0].error == "ZeroDivisionError: division by zero"


def test_a_poison_task_is_buried_after_max_deliveries_with_its_last_error(make):
    queue = make(max_deliveries=3)
    task_id = queue.put("a")

    def handler(task):
        raise ValueError(task.deliveries)

    with Running(queue, handler):
        until(lambda: counts(queue) == {"B": 1})
    task = queue.peek(task_id)
    assert (task.deliveries, task.error) == (3, "ValueError: 3")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda task: task.release(delay=3600), {"W": 1}),
        (lambda task: task.bury(), {"B": 1}),
        (lambda task: task.ack(), {}),
    ],
    ids=["release", "bury", "ack"],
)
@pytest.mark.parametrize("raises", [False, True])
def test_a_task_that_its_handler_settled_stays_so(make, act, expected, raises, caplog):
    queue = make()
    queue.put("a")
    returned = threading.Event()

    def handler(task):
        act(task)
        returned.set()
        if raises:
            raise ValueError

    with Running(queue, handler):
        assert returned.wait(LIMIT)
    assert counts(queue) == expected
    assert len(caplog.records) == raises


def test_a_handler_that_comes_too_late_changes_nothing_and_is_logged(make, caplog):
    queue = make()
    task_id = queue.put("a")

    def handler(task):
        if task.deliveries == 1:
            queue.snatch(task_id)

    with Running(queue, handler):
        until(finished(queue, 1))
    assert "too late" in caplog.text
    assert queue.stats().transitions == {"X-R": 1, "R-T": 2, "T-R": 1, "T-X": 1}


def test_ttr_limits_a_handler_and_touch_extends_it(make):
    queue = make(ttr=None)
    queue.put("a")
    deliveries = []

    def handler(task):
        deliveries.append(task.deliveries)
        if task.deliveries == 1:
            # So it hangs. The run begins the second delivery when this one has ended.
            return until(lambda: queue.stats().transitions.get("R-T") == 2)
        task.touch(3600)
        return None

    with Running(queue, handler, ttr=0.5, concurrency=2):
        until(finished(queue, 1))
    assert deliveries == [1, 2]


def test_a_handler_hears_at_once_that_its_ttr_is_over(make, caplog):
    queue = make()
    queue.put("a")
    seen = []

    def handler(task):
        if task.deliveries == 1:
            until(lambda: "its ttr is over" in caplog.text)
            seen.append(caplog.text)

    with Running(queue, handler, ttr=0.2):
        until(finished(queue, 1))
    assert "its handler goes on" in seen[0]
    assert "too late" not in seen[0]


def test_a_run_never_has_two_deliveries_of_a_task_at_a_time(make):
    queue = make()
    queue.put("a")
    running, most = 0, 0

    def handler(task):
        nonlocal running, most
        running += 1
        most = max(most, running)
        if task.deliveries == 1:
            until(lambda: queue.stats().transitions.get("R-T") == 2)  # its ttr is over
            time.sleep(0.1)
        running -= 1

    with Running(queue, handler, concurrency=2, ttr=0.3):
        until(finished(queue, 1))
    assert most == 1


def test_a_handler_that_touches_its_task_in_time_hears_nothing_of_its_ttr(make, caplog):
    queue = make()
    queue.put("a")

    def handler(task):
        task.touch(3600)
        time.sleep(1.6)  # beyond the ttr, and the next look of the run

    with Running(queue, handler, ttr=1.0):
        until(finished(queue, 1))
    assert "ttr" not in caplog.text


def test_a_handler_beyond_its_time_limit_is_late_and_the_log_says_so(make, caplog):
    queue = make()
    queue.put("a")
    seen = []

    def handler(task):
        seen.append(task.is_late)
        until(lambda: "time_limit" in caplog.text)
        seen.append(task.is_late)

    with Running(queue, handler, time_limit=0.2):
        until(finished(queue, 1))
    assert seen == [False, True]
    assert "goes on beyond its time_limit of 0.2 s" in caplog.text
    assert caplog.text.count("time_limit") == 1


def test_a_handler_that_returns_in_time_hears_nothing_of_its_time_limit(make, caplog):
    queue = make()
    queue.put("a")
    with Running(queue, lambda task: time.sleep(0.6), time_limit=60):
        until(finished(queue, 1))
    assert "time_limit" not in caplog.text


def test_tasks_of_a_tube(make):
    queue = make()
    queue.put("a", tube="x")
    queue.put("b")
    with Running(queue, lambda task: None, tube="x"):
        until(finished(queue, 1))
    assert queue.take(0).data == "b"


def test_a_task_that_cannot_be_decoded_is_buried_and_the_others_go_on(make, caplog, name, url):
    queue = make(serializer="json")
    TaskQueue(name, url=url, serializer="raw").put(b"{")
    queue.put("a")
    with Running(queue, lambda task: None):
        until(finished(queue, 1))
    assert counts(queue) == {"B": 1}
    assert caplog.records[0].exc_info[0] is DecodingError


# Registered handlers


def test_registered_handlers_run_together_each_with_its_options(make):
    queue = make()
    seen = []

    @queue.worker(tube="x", concurrency=2)
    def one(task):
        seen.append(("one", task.data))

    @queue.worker(tube="y", on_error="bury")
    def other(task):
        seen.append(("other", task.data))
        raise ValueError

    queue.put(1, tube="x")
    queue.put(2, tube="y")
    with Running(queue):
        until(lambda: counts(queue) == {"B": 1})
        until(finished(queue, 1))
    assert sorted(seen) == [("one", 1), ("other", 2)]
    assert one.__name__ == "one"


@pytest.mark.needs(Can.PROCESSES)
def test_handlers_do_not_go_along_with_a_pickled_queue(make):
    queue = make()
    queue.worker()(lambda task: None)
    with pytest.raises(ArgumentError, match="no handler"):
        pickle.loads(pickle.dumps(queue)).run()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"concurrency": 0}, ArgumentError),
        ({"concurrency": 1.5}, ArgumentTypeError),
        ({"on_error": "ignore"}, ArgumentError),
        ({"on_error": "bury", "backoff": 1}, ArgumentError),
        ({"time_limit": 0}, ArgumentError),
        ({"time_limit": "1"}, ArgumentTypeError),
        ({"grace": -1}, ArgumentError),
        ({"handler": "print"}, ArgumentTypeError),
    ],
    ids=str,
)
def test_wrong_arguments_of_run_are_an_error_at_once(make, options, error):
    with pytest.raises(error):
        make().run(**{"handler": print, **options})


def test_a_run_without_a_handler_takes_no_options_of_one(make):
    queue = make()
    queue.worker()(print)
    with pytest.raises(ArgumentError, match="worker"):
        queue.run(concurrency=2)


def test_a_closed_handle_runs_nothing(make):
    queue = make()
    queue.close()
    with pytest.raises(HandleClosedError):
        queue.run(print)


# Its end


def test_a_stopped_run_finishes_its_task_and_begins_no_other(make):
    queue = make()
    queue.put_many(["a", "b"])
    begun, stop = threading.Event(), threading.Event()
    seen = []

    def handler(task):
        begun.set()
        assert stop.wait(LIMIT)
        seen.append(task.data)

    running = Background(queue.run, handler, stop=stop)
    assert begun.wait(LIMIT)
    stop.set()
    running.result()
    assert seen == ["a"]
    assert counts(queue) == {"R": 1}


def test_a_stopped_run_that_waits_for_tasks_ends_within_a_second(make):
    queue = make()
    stop = threading.Event()
    running = Background(queue.run, print, concurrency=3, stop=stop)
    running.join(0.2)  # by now they wait
    assert running.is_alive()
    stop.set()
    running.result()
    task_id = queue.put("a")
    assert queue.take(0.1).id == task_id, "no ended take was woken in place of this one"


def test_a_task_that_is_not_finished_within_the_grace_is_given_back(make, caplog):
    queue = make()
    task_id = queue.put("a")
    begun, go_on, stop = threading.Event(), threading.Event(), threading.Event()
    late = []

    def handler(task):
        begun.set()
        go_on.wait(LIMIT)
        with pytest.raises(NotTaken) as caught:
            queue.ack(task_id)
        late.append(caught)

    running = Background(queue.run, handler, grace=0.05, stop=stop)
    assert begun.wait(LIMIT)
    stop.set()
    running.result()
    assert counts(queue) == {"R": 1}
    assert "before it was finished" in queue.peek(task_id).error
    assert "before it was finished" in caplog.text
    go_on.set()
    until(lambda: late)
    assert counts(queue) == {"R": 1}


class Late(TaskQueue):
    """A take that returns only after it is told to."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.taken, self.go_on = threading.Event(), threading.Event()

    def _take_for_run(self, *args, **options):
        taken = super()._take_for_run(*args, **options)
        self.taken.set()
        self.go_on.wait(LIMIT)
        return taken


def test_a_task_that_comes_after_the_end_of_a_run_is_not_begun(url, name):
    queue = Late(name, url=url)
    queue.put("a")
    seen, stop = [], threading.Event()
    running = Background(queue.run, seen.append, grace=0, stop=stop)
    assert queue.taken.wait(LIMIT)
    stop.set()
    running.result()
    assert counts(queue) == {"T": 1}
    queue.go_on.set()
    until(lambda: counts(queue) == {"R": 1})
    assert seen == []


def test_a_run_ends_when_the_queue_is_shut_down_and_no_task_is_ready(make):
    queue = make()
    seen = []
    running = Background(queue.run, lambda task: seen.append(task.data), concurrency=2)
    queue.put_many(range(5))
    queue.shutdown()
    running.result()
    assert sorted(seen) == list(range(5))


def test_a_run_raises_what_no_task_can_help(make):
    queue = make()
    running = Background(queue.run, print, concurrency=2)
    running.join(0.05)
    queue.delete()
    with pytest.raises(QueueDoesNotExistError):
        running.result()


def test_a_handler_that_exits_ends_the_run_and_its_task_is_given_back(make, caplog):
    queue = make()
    queue.put("a")

    def handler(task):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        queue.run(handler, concurrency=2)
    assert counts(queue) == {"R": 1}


@pytest.mark.parametrize("backoff", backoffs.WRONG)
def test_a_task_whose_backoff_fails_waits_as_by_default_and_the_run_goes_on(
    make, backoff, caplog, monkeypatch
):
    backoffs.have_long_default(monkeypatch)
    queue = make()
    id, last = queue.put_many(["a", "b"])
    queue.run(lambda task: 1 / 0, backoff=backoff, max_tasks=2)
    for one in (id, last):
        task = queue.peek(one)
        assert backoffs.is_default(task)
        assert task.error == "ZeroDivisionError: division by zero"
        assert backoffs.told(caplog, task, queue)
