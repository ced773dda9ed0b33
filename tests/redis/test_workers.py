"""Worker processes that are told to stop, killed, and that come too late."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from programs import workers as programs
from waiting import HOURS, LIMIT, blocked, lasting, until

from pressure_mp import TaskQueue

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def make(own_server, name):
    made = []

    def make(**options):
        options.setdefault("lease", HOURS)  # what waits for its end does not end
        made.append(TaskQueue(name, url=own_server.url, **options))
        return made[-1]

    yield make
    made[0].delete()
    with own_server.client() as client:
        assert lasting(client, f"*{name}*") == []


def counts(queue):
    return {state: number for state, number in queue.stats().counts.items() if number}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_end_finishes_what_it_has_and_begins_nothing(make, start, number):
    queue = make()
    queue.put_many(["a", "b", "c"])
    process, pipe = start(programs.work, queue, says_when_told=True, concurrency=2)
    assert {pipe.recv(), pipe.recv()} == {"a", "b"}
    os.kill(process.pid, number)
    assert "takes no more tasks" in pipe.recv()
    pipe.send("go on")
    pipe.send("go on")
    ended, restored, warnings = pipe.recv()
    assert (ended, restored, warnings) == ("ended", True, [])
    process.join()
    assert process.exitcode == 0
    assert counts(queue) == {"R": 1}


def test_a_worker_that_was_started_without_interrupts_ignores_them(make, start):
    queue = make()
    queue.put_many(["a", "b"])
    process, pipe = start(programs.work, queue, interrupts=False, says_when_told=True)
    assert pipe.recv() == "a"
    os.kill(process.pid, signal.SIGINT)
    pipe.send("go on")
    assert pipe.recv() == "b"
    os.kill(process.pid, signal.SIGTERM)
    assert "signal 15" in pipe.recv()
    pipe.send("go on")
    assert pipe.recv() == ("ended", True, [])
    process.join()
    assert process.exitcode == 0


def test_a_worker_that_waits_ends_within_a_second(make, start, own_server):
    queue = make()
    process, pipe = start(programs.work, queue, concurrency=3)
    until(lambda: blocked(own_server.client()) == 1)  # one waits for all
    process.terminate()
    assert pipe.recv()[0] == "ended"
    process.join()


def test_a_task_not_finished_within_the_grace_is_given_back_and_the_process_ends(make, start):
    queue = make()
    queue.put("a")
    process, pipe = start(programs.work, queue, grace=0.1)
    assert pipe.recv() == "a"
    process.terminate()
    _, restored, (warning,) = pipe.recv()
    assert restored
    assert "before it was finished" in warning
    assert queue.take(0).error
    process.join()
    assert process.exitcode == 0


def test_a_second_signal_ends_the_time_that_tasks_have(make, start):
    queue = make()
    queue.put("a")
    process, pipe = start(programs.work, queue, grace=None)
    assert pipe.recv() == "a"
    process.terminate()
    process.terminate()
    while not pipe.poll(0.2):  # two of a kind that come at once are one
        process.terminate()
    assert pipe.recv()[0] == "ended"
    assert counts(queue) == {"R": 1}
    process.join()


def test_a_handler_that_exits_ends_its_process_and_gives_its_task_back(make, start):
    queue = make()
    queue.put("a")
    process, pipe = start(programs.exit_in_a_handler, queue)
    assert pipe.recv() == "a"
    process.join()
    assert process.exitcode == 7
    assert counts(queue) == {"R": 1}


def test_a_waiting_take_gets_the_task_of_a_killed_worker_at_once(make, start):
    queue = make()
    queue.put("a")
    process, pipe = start(programs.work, queue)
    assert pipe.recv() == "a"
    process.kill()
    task = queue.take()
    assert (task.data, task.deliveries) == ("a", 2)
    task.ack()


def test_a_stopped_worker_loses_its_task_after_its_lease_and_is_told_when_it_wakes(make, start):
    queue = make(lease=1.0)
    queue.put("a")
    process, pipe = start(programs.take_late, queue)
    assert pipe.recv() == "a"
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    task = queue.take(LIMIT)
    assert task.data == "a"
    pipe.send("acknowledge")
    os.kill(process.pid, signal.SIGCONT)
    error, state, text = pipe.recv()
    assert (error, state) == ("NotOwner", "T")
    assert "taken" in text
    task.ack()
    process.join()


def test_a_worker_that_was_slower_than_its_ttr_is_told_so(make, start):
    queue = make(ttr=0.1)
    queue.put("a")
    process, pipe = start(programs.take_late, queue)
    assert pipe.recv() == "a"
    task = queue.take(LIMIT, ttr=60)
    pipe.send("acknowledge")
    assert pipe.recv()[:2] == ("NotOwner", "T")
    task.ack()
    pipe.close()
    process.join()
