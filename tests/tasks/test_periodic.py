"""Periodic tasks: a schedule is kept at the broker, and whichever run is there puts its tasks, once
for each time."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from datetime import datetime, timezone

import engines
import pytest
from engines import Can
from waiting import LIMIT, Background, until

from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    BrokerError,
    BrokerFull,
    DecodingError,
    IncompleteQueueError,
    ItemTooLargeError,
    NotDurable,
    TaskQueue,
    aio,
)
from pressure_mp.encoding import schedules
from pressure_mp.encoding.schedules import Schedule
from pressure_mp.encoding.task_values import encode_id
from pressure_mp.operations import periodic as operations
from pressure_mp.operations.periodic import ScheduleOperations
from pressure_mp.sync.tasks import periodic

SERVERS = pytest.mark.parametrize("url", engines.able(Can.SERVER), indirect=True, ids=str)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch):
    """A run that has found no schedule looks again soon."""
    monkeypatch.setattr(periodic, "_LOOK", 0.1)


def schedule(when, missed="once", at=0.0, zone="UTC"):
    return Schedule(when, zone, missed, {}, b"", at)


def moment(*when):
    return datetime(*when, tzinfo=timezone.utc).timestamp()


# The times


def test_the_times_of_seconds_are_counted_from_the_first():
    one = schedule(10.0).begin(103.0)
    assert one.at == 113.0
    assert one.go_on(113.2).at == 123.0
    assert one.go_on(151.0).at == 153.0


def test_missed_times_are_made_up_for_or_not():
    late = {missed: schedule(10.0, missed, at=100.0) for missed in ("once", "all", "skip")}
    assert [one.go_on(151.0).at for one in late.values()] == [160.0, 110.0, 160.0]
    assert [one.is_to_put(151.0) for one in late.values()] == [True, True, False]
    assert all(one.is_to_put(101.0) for one in late.values())


def test_a_cron_line_is_read_in_its_time_zone():
    nine = schedule("0 9 * * 1-5", zone="Europe/Paris")
    friday = moment(2026, 10, 23, 10)
    assert nine.begin(friday).at == moment(2026, 10, 26, 8)  # Paris is back at UTC+1 on the 25th
    assert nine.begin(moment(2026, 10, 22, 10)).at == moment(2026, 10, 23, 7)
    assert schedule("*/10 * * * * *").begin(100.5).at == 110.0


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("every day", None, "once"), ArgumentError, "no cron line"),
        (("0 0 30 2 *", None, "once"), ArgumentError, "cron line"),
        (("* * * * *", "Mars/Olympus", "once"), ArgumentError, "no time zone 'Mars/Olympus'"),
        ((5, "Europe/Paris", "once"), ArgumentError, "timezone= is for a cron line"),
        ((0, None, "once"), ArgumentError, "0.001 seconds at most"),
        ((True, None, "once"), ArgumentTypeError, "not bool"),
        ((None, None, "once"), ArgumentTypeError, "not NoneType"),
        ((5, 1, "once"), ArgumentTypeError, "timezone is a name"),
        ((5, None, "never"), ArgumentError, "once, all, skip"),
    ],
)
def test_a_wrong_schedule_is_refused(arguments, error, says):
    with pytest.raises(error, match=says):
        schedules.check(*arguments)


# The queue


def test_a_schedule_is_there_for_each_handle_until_it_is_removed(queue, url, name):
    assert queue.schedules() == []
    assert not queue.unschedule("nightly")
    queue.every("0 3 * * *", "clean up", name="nightly", timezone="Europe/Paris")
    queue.every(3600, "count")
    first, second = TaskQueue(name, url=url).schedules()
    assert {first.when, second.when} == {"0 3 * * *", 3600.0}
    assert first.next <= second.next
    assert queue.unschedule("nightly")
    assert [one.when for one in queue.schedules()] == [3600.0]


def test_the_same_schedule_goes_on_and_another_one_takes_its_place(queue):
    name = queue.every(3600, "data")
    (before,) = queue.schedules()
    time.sleep(0.01)
    assert queue.every(3600, "data") == name
    assert queue.schedules() == [before]
    assert queue.every(1800, "data", name=name) == name
    (after,) = queue.schedules()
    assert after.when == 1800.0
    assert after.next < before.next
    queue.every(3600, "other data")
    assert len(queue.schedules()) == 2


def test_a_run_puts_the_tasks_of_a_schedule(queue):
    got, stop = [], threading.Event()
    queue.every(0.05, "data", tube="a", priority=3, result_ttl=60, ttl=30)

    def handler(task):
        got.append(task)
        if len(got) == 4:
            stop.set()

    queue.run(handler, stop=stop)
    assert {(task.data, task.tube, task.priority) for task in got[:4]} == {("data", "a", 3)}
    assert got[0].result_ttl == 60
    moments = [task.created for task in got[:4]]
    assert 0.1 < moments[3] - moments[0] < LIMIT


def test_a_run_finds_a_schedule_that_comes_later(queue):
    handled, stop = threading.Event(), threading.Event()
    running = Background(queue.run, lambda task: handled.set(), stop=stop)
    queue.every(0.01, "data")
    assert handled.wait(LIMIT)
    stop.set()
    running.result()


def test_a_loop_puts_the_tasks_of_a_schedule(url, name):
    async def main():
        async with aio.TaskQueue(name, url=url) as queue:
            stop, got = asyncio.Event(), []

            async def handler(task):
                got.append(task.data)
                if len(got) == 3:
                    stop.set()

            assert await queue.every(0.02, "data", name="often") == "often"
            await queue.run(handler, stop=stop)
            assert got[:3] == ["data"] * 3
            assert [one.name for one in await queue.schedules()] == ["often"]
            assert await queue.unschedule("often")
            await queue.delete()

    asyncio.run(main())


def test_schedules_that_change_their_states_meanwhile_are_listed(url, name, monkeypatch):
    queue = TaskQueue(name, url=url)
    queue.every(1000, "data", name="seldom")
    listed, unseen = ScheduleOperations.list, ["third", "second", "first"]

    def list_some(self, *options):
        found = yield from listed(self, *options)
        if not unseen:
            return found
        queue.every(1000, "data", name=unseen.pop())
        return []

    monkeypatch.setattr(ScheduleOperations, "list", list_some)
    assert {one.name for one in queue.schedules()} == {"seldom", "first", "second", "third"}
    queue.delete()


def test_schedules_are_listed_while_others_are_removed_and_added(url, name, monkeypatch):
    queue, listed = TaskQueue(name, url=url), ScheduleOperations.list
    queue.every(1000, "data", name="stays")
    queue.every(1000, "data", name="goes")
    changes = [lambda: queue.every(1000, "data", name="comes"), lambda: queue.unschedule("goes")]

    def list_some(self, *options):
        found = yield from listed(self, *options)
        if not changes:
            return found
        changes.pop()()
        return [task for task in found if task.id != encode_id("stays")]

    monkeypatch.setattr(ScheduleOperations, "list", list_some)
    assert sorted(one.name for one in queue.schedules()) == ["comes", "stays"]
    queue.delete()


def test_ids_that_a_put_has_to_state_are_made_of_the_times(url, name):
    queue = TaskQueue(name, url=url, id="required")
    got, stop = [], threading.Event()
    queue.every(0.02, "data", name="often")

    def handler(task):
        got.append(task.id)
        if len(got) == 3:
            stop.set()

    queue.run(handler, stop=stop)
    assert len(set(got)) == len(got)
    assert all(id.startswith("often 1") for id in got)
    queue.delete()


def test_times_at_which_no_run_was_there_are_made_up_for(queue):
    queue.every(0.02, "once", name="once")
    queue.every(0.02, "all", name="all", missed="all")
    last = {one.name: one.next for one in queue.schedules()}
    time.sleep(0.3)
    got, stop = [], threading.Event()
    running = Background(queue.run, lambda task: got.append(task.data), stop=stop)
    until(lambda: got.count("all") >= 15)
    stop.set()
    running.result()
    times = {one.name: round((one.next - last[one.name]) / 0.02) for one in queue.schedules()}
    assert 1 <= got.count("once") <= times["once"] - 10
    assert got.count("all") <= times["all"]


# Refusals


@pytest.fixture(params=["threads", "asyncio"])
def beside(request, queue, url, name):
    """A run of a handler beside the block."""

    async def on_loop(handler, stop):
        told = asyncio.Event()
        there = aio.TaskQueue(name, url=url)
        run = asyncio.ensure_future(there.run(handler, stop=told))
        await asyncio.get_running_loop().run_in_executor(None, stop.wait)
        told.set()
        await run

    @contextlib.contextmanager
    def beside(handler):
        stop = threading.Event()
        if request.param == "threads":
            run = Background(queue.run, handler, stop=stop)
        else:
            run = Background(asyncio.run, on_loop(handler, stop))
        try:
            yield
        finally:
            stop.set()
            run.result()

    return beside


def lines(caplog, text):
    return [record for record in caplog.records if text in record.getMessage()]


def kept_schedules(name, url):
    """The queue of the schedules."""
    return TaskQueue.attach(f"{name}:periodic", url=url, serializer="raw")


def refuse(monkeypatch, verb, error, times):
    """An operation of schedules raises an error so often, and then is done as before."""
    done, left = getattr(ScheduleOperations, verb), iter(range(times))

    def refused(self, *arguments):
        if next(left, None) is not None:
            raise error
        return (yield from done(self, *arguments))

    monkeypatch.setattr(ScheduleOperations, verb, refused)


@pytest.mark.parametrize("verb", ["take", "put_due"])
@pytest.mark.parametrize("error", [BrokerFull, BrokerError, IncompleteQueueError, NotDurable])
def test_a_schedule_goes_on_when_the_broker_refuses_no_more(
    queue, beside, monkeypatch, caplog, verb, error
):
    monkeypatch.setattr(periodic, "PAUSE", 0.001)
    queue.every(0.01, "data", name="often")
    refuse(monkeypatch, verb, error("not now"), 20)
    got = threading.Event()
    with beside(lambda task: got.set()):
        assert got.wait(LIMIT)
    (line,) = lines(caplog, "")
    assert line.levelname == "WARNING"
    assert line.getMessage() == f"periodic tasks of {queue.name!r} are tried again: not now"
    assert [(one.name, one.is_buried) for one in queue.schedules()] == [("often", False)]


def test_after_refusals_the_next_time_is_not_late(queue, beside, monkeypatch, name, url):
    monkeypatch.setattr(periodic, "PAUSE", 0.1)
    queue.every(1.5, "data", name="often")
    refuse(monkeypatch, "put_due", BrokerFull("not now"), 10)
    there = kept_schedules(name, url)
    with beside(lambda task: None):
        until(lambda: queue.stats().transitions)
        until(lambda: there.stats().transitions.get("T-W"))
        (one,), (schedule,) = there.list(), queue.schedules()
    assert abs(one.due - schedule.next) < 0.5


def test_the_log_is_told_of_each_time_at_which_the_broker_refuses(queue, monkeypatch, caplog):
    monkeypatch.setattr(periodic, "PAUSE", 0.001)
    queue.every(0.01, "data", name="often")
    refuse(monkeypatch, "put_due", BrokerFull("not now"), 3)
    got, stop = [], threading.Event()

    def handler(task):
        got.append(task)
        if len(got) == 5:
            refuse(monkeypatch, "put_due", BrokerFull("not now"), 3)
        if len(got) == 10:
            stop.set()

    queue.run(handler, stop=stop)
    assert len(lines(caplog, "are tried again")) == 2


def no_zone(monkeypatch):
    def none(name):
        raise ArgumentError(f"there is no time zone {name!r} on this machine")

    monkeypatch.setattr(schedules, "_zone", none)


def no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "cronsim", None)


@pytest.mark.parametrize(
    ("lacks", "says"),
    [(no_zone, "there is no time zone 'Europe/Paris' on this machine"), (no_library, "cron lines")],
)
def test_a_schedule_that_one_machine_cannot_read_is_left_to_others(
    queue, beside, monkeypatch, caplog, name, url, lacks, says
):
    monkeypatch.setattr(operations, "_ELSEWHERE", 10)
    queue.every("* * * * * *", "data", name="often", timezone="Europe/Paris")
    there = kept_schedules(name, url)
    with monkeypatch.context() as here:
        lacks(here)
        with beside(lambda task: None):
            until(lambda: there.stats().transitions.get("T-W", 0) > 3)
        assert queue.stats().transitions == {}
    (line,) = lines(caplog, "")
    left = f"the schedule 'often' of {queue.name!r} is left to other machines: {says}"
    assert line.levelname == "WARNING"
    assert line.getMessage().startswith(left)
    got = threading.Event()
    with beside(lambda task: got.set()):
        assert got.wait(LIMIT)


def test_a_schedule_that_one_machine_cannot_read_waits_so_that_it_is_not_late(
    queue, monkeypatch, name, url
):
    queue.every("* * * * * *", "data", name="often", timezone="Europe/Paris")
    no_zone(monkeypatch)
    there, stop = kept_schedules(name, url), threading.Event()
    run = Background(queue.run, lambda task: None, stop=stop)
    until(lambda: there.stats().transitions.get("T-W"))
    (one,) = there.list()
    assert 1 < one.due - one.since < schedules.LATE
    stop.set()
    run.result()


@pytest.mark.parametrize("refusals", [0, 3], ids=["at once", "later"])
def test_a_schedule_whose_task_can_never_be_put_is_buried_until_it_is_made_anew(
    queue, beside, monkeypatch, caplog, refusals
):
    monkeypatch.setattr(periodic, "PAUSE", 0.001)
    queue.every(0.01, "data", name="often")
    got = threading.Event()
    with beside(lambda task: got.set()):
        with monkeypatch.context() as until_then:
            refuse(until_then, "put_due", ItemTooLargeError("too large"), 10**9)
            refuse(until_then, "bury", BrokerFull("not now"), refusals)
            until(lambda: [one.is_buried for one in queue.schedules()] == [True])
        (line,) = until(lambda: lines(caplog, "cannot be put"))
        assert str(line.exc_info[1]) == "too large"
        got.clear()
        queue.every(0.01, "data", name="often")
        assert [one.is_buried for one in queue.schedules()] == [False]
        assert got.wait(LIMIT)


def test_a_schedule_that_cannot_be_decoded_is_buried_and_may_be_made_anew(
    queue, beside, caplog, name, url
):
    queue.every(1000, "data", name="seldom")
    kept_schedules(name, url).put(b"not a schedule", id="often")
    got = threading.Event()
    with beside(lambda task: got.set()):
        (line,) = until(lambda: lines(caplog, "cannot be put"))
        assert isinstance(line.exc_info[1], DecodingError)
        queue.every(0.01, "data", name="often")
        assert got.wait(LIMIT)


def test_an_anonymous_queue_has_no_schedules(url):
    queue = TaskQueue(url=url)
    with pytest.raises(ArgumentError, match="with a name"):
        queue.every(1, "data")
    queue.close()


def test_a_queue_that_is_deleted_has_no_schedules_any_more(url, name):
    queue = TaskQueue(name, url=url)
    queue.every(3600, "data")
    queue.delete()
    assert TaskQueue(name, url=url).schedules() == []
    TaskQueue(name, url=url).delete()


def run_in_process(url, name, taken):
    def handler(task):
        os.write(taken, f"{task.id}\n".encode())

    TaskQueue(name, url=url).run(handler, concurrency=2)


class Runs:
    """Processes that run a queue, and note the ids of the tasks that they begin."""

    def __init__(self, *place):
        self._place = place
        self._taken, self._write = os.pipe()  # it has room for all ids
        self._context = multiprocessing.get_context("fork")
        self._there = []

    def start(self, number):
        for _ in range(number):
            run = self._context.Process(target=run_in_process, args=(*self._place, self._write))
            run.start()
            self._there.append(run)

    def kill(self, number):
        for _ in range(number):
            run = self._there.pop(0)
            run.kill()
            run.join()

    def end(self):
        """Kill all; the ids."""
        self.kill(len(self._there))
        os.close(self._write)
        with open(self._taken) as lines:
            return [line.strip() for line in lines]


def next_times(queue):
    """Of each schedule."""
    return {one.name: one.next for one in queue.schedules()}


@pytest.mark.parametrize("killed", [0, 1, 2])
def test_schedules_go_on_over_a_restart_of_the_broker(killed, durable, name, monkeypatch):
    every, late = 0.05, 0.3
    monkeypatch.setattr(schedules, "LATE", late)
    queue = TaskQueue(name, url=durable.url, id="required", reconnect=LIMIT)
    for missed in ("once", "all", "skip"):
        queue.every(every, "data", name=missed, missed=missed, tube=missed)
    begun = next_times(queue)
    runs = Runs(durable.url, name)
    runs.start(2)
    until(lambda: min(next_times(queue).values()) > max(begun.values()) + 5 * every)
    durable.kill()
    gone = time.time()
    runs.kill(killed)
    time.sleep(2 * late)
    back = time.time()
    durable.start()
    runs.start(killed)
    until(lambda: min(next_times(queue).values()) > time.time() - late)
    later = time.time() + 5 * every
    until(lambda: min(next_times(queue).values()) > later)
    ids = {*runs.end(), *(task.id for task in queue.list(limit=1000))}

    due = {missed: [] for missed in begun}
    for missed, at in map(str.split, ids):
        due[missed].append(int(at) / 1000)
    stats, now = queue.stats(), next_times(queue)
    for missed, times in due.items():
        put = stats.tubes[missed].transitions
        assert sum(number for way, number in put.items() if way[:2] == "X-") == len(times)
        assert max(times) > back
    assert len(due["all"]) == round((now["all"] - begun["all"]) / every)
    assert sum(gone < at < back for at in due["all"]) >= 2 * late / every - 1
    assert sum(gone < at < back for at in due["once"]) <= 1
    assert not any(gone < at < back - late for at in due["skip"])


@SERVERS
def test_each_time_has_its_task_once_while_runs_are_killed(queue, url, name):
    """Kill runs in the midst of their puts; then count the times and the tasks that were put."""
    every, kills = 0.02, 6
    queue.every(every, "data", name="often", missed="all")
    (begun,) = queue.schedules()
    read, write = os.pipe()
    context = multiprocessing.get_context("fork")
    runs = []
    for _ in range(kills):
        runs += [context.Process(target=run_in_process, args=(url, name, write)) for _ in "ab"]
        for run in runs[-2:]:
            run.start()
        for _ in range(5):
            os.read(read, 17)
        for run in runs[-2:]:
            os.kill(run.pid, signal.SIGKILL)
            run.join()
    (now,) = queue.schedules()
    number = round((now.next - begun.next) / every)
    stats = queue.stats()
    assert number == sum(times for way, times in stats.transitions.items() if way.startswith("X-"))
    assert number > kills
