"""Worker processes: how they are started and end, and what becomes of calls when they die."""

from __future__ import annotations

import multiprocessing
import re
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from types import SimpleNamespace

import psutil
import pytest
from executors import functions
from executors.threads import Workers
from waiting import lasting, until

from pressure_mp import Executor, ExecutorBroken, QueueDoesNotExistError, TaskQueue, WorkerLost
from pressure_mp.executor import worker
from pressure_mp.executor.call_queue import CallQueue

# Since Python 3.12 a fork warns when there are threads, as there are when a worker is replaced.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture
def url(valkey):
    return valkey.url


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_call_whose_worker_dies_runs_again_in_another(make, method, tmp_path):
    executor = make(method=method)
    path = str(tmp_path / "runs")
    assert executor.submit(functions.die_once, path).result(60) == "done"
    assert len(set(functions.runs(path))) == 1
    assert executor.submit(functions.pid).result(60) not in functions.runs(path)


def test_a_worker_is_lost_also_when_its_call_ends_it_as_if_all_were_well(make, caplog):
    with pytest.raises(WorkerLost, match="exit code 0"):
        make(max_deliveries=1).submit(functions.end_process, 0).result(60)
    until(lambda: "exit code 0; its tasks are given to another" in caplog.text)


def test_with_one_delivery_nothing_runs_twice(make, tmp_path):
    path = str(tmp_path / "runs")
    with pytest.raises(WorkerLost):
        make(max_deliveries=1).submit(functions.die, path).result(60)
    assert len(functions.runs(path)) == 1


def test_an_initializer_that_fails_breaks_the_executor(make):
    executor = make(initializer=functions.begin_badly)
    future = executor.submit(abs, -1)
    with pytest.raises(BrokenExecutor, match="this one cannot begin"):
        future.result(60)
    with pytest.raises(ExecutorBroken, match="takes no more calls"):
        executor.submit(abs, -3)


def test_an_executor_is_broken_when_the_worker_whose_initializer_failed_has_ended(make, tmp_path):
    """So whatever that worker logs to a queue of multiprocessing is there then."""
    path = tmp_path / "ended"
    executor = make(1, initializer=functions.begin_badly_and_end_slowly, initargs=(str(path),))
    with pytest.raises(BrokenExecutor, match="this one cannot begin"):
        executor.submit(abs, -1).result(60)
    assert path.read_text() == "ended"


def test_each_worker_begins_with_its_initializer_and_ends_after_so_many_calls(make):
    executor = make(
        method="forkserver",
        initializer=functions.begin,
        initargs=("ready",),
        max_tasks_per_child=2,
    )
    pids = list(executor.map(functions.pid, range(5)))
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
    assert executor.submit(functions.get_status).result(60) == "ready"


def test_workers_are_started_when_there_are_calls_for_them(make):
    executor = make(3, method="forkserver")
    assert executor._processes == {}
    executor.submit(abs, -1).result(60)
    assert len(executor._processes) == 1


def test_workers_that_are_forked_in_a_thread_of_a_pool_end_well(make):
    executor = make(2)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(abs, -1).result(60)  # the pool knows of its thread
        assert pool.submit(executor.submit, abs, -1).result(60).result(60) == 1
    workers = list(executor._processes.values())
    executor.shutdown()
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_a_shut_down_executor_leaves_nothing_behind(make, valkey):
    executor = make(2)
    assert list(executor.map(abs, range(20))) == list(range(20))
    pids = list(executor._processes)
    executor.shutdown()
    assert not any(map(psutil.pid_exists, pids))
    with valkey.client() as client:
        assert lasting(client, f"*{executor.name}*") == []


def test_an_executor_whose_first_call_cannot_be_sent_ends_its_workers(make, name, url):
    executor = make(2, name=name)
    TaskQueue.attach(name, url=url).delete()
    with pytest.raises(QueueDoesNotExistError):
        executor.submit(abs, -1)
    workers = list(executor._processes.values())
    executor.shutdown(wait=False)
    until(lambda: executor._processes == {})
    assert [worker.exitcode for worker in workers] == [0, 0]
    executor.shutdown()


def test_a_program_ends_when_its_calls_are_done(program, tmp_path):
    process = program("ends", tmp_path / "runs")
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
    assert len(functions.runs(str(tmp_path / "runs"))) == 1


def test_a_program_that_deletes_a_shut_down_executor_ends_without_a_word(program, name):
    process = program("deletes", name)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def in_a_fork(do, *args):
    """Have a forked child do it, and end as every program does; returns its exit code."""
    child = multiprocessing.get_context("fork").Process(target=do, args=args)
    child.start()
    child.join(60)
    return child.exitcode


def leave_with(executor, futures, results):
    """A child leaves the block in which its parent uses an executor."""
    with executor:
        assert [future.cancel() for future in futures] == [False] * len(futures)
        results.close()
    executor.shutdown(cancel_futures=True)


def test_a_forked_child_that_leaves_an_unused_executor_leaves_it_to_its_parent(make):
    executor = make(2)
    assert in_a_fork(leave_with, executor, [], executor.map(abs, [])) == 0
    assert executor.submit(abs, -1).result(60) == 1


def test_a_forked_child_cancels_no_calls_of_its_parent(make, tmp_path):
    executor, running, go_on = make(), tmp_path / "running", tmp_path / "go on"
    held = executor.submit(functions.hold, str(running), str(go_on))
    queued = [executor.submit(abs, -one) for one in range(3)]
    results = executor.map(abs, range(3))
    until(lambda: functions.runs(str(running)))
    assert in_a_fork(leave_with, executor, queued, results) == 0
    go_on.touch()
    assert held.result(60) == "held"
    assert [future.result(60) for future in queued] == list(range(3))
    assert list(results) == list(range(3))


def one_that_logs(server, log):
    """An executor with one worker, which writes what it logs into a file, and soon says that it
    cannot reach the broker."""
    return Executor(
        1,
        url=server.url,
        mp_context=multiprocessing.get_context("forkserver"),
        initializer=functions.log_to,
        initargs=(str(log),),
        reconnect=0.1,
    )


def test_a_call_that_ended_while_the_broker_was_away_is_told_when_it_is_back(
    keeping_server, tmp_path
):
    running, go_on, log = tmp_path / "running", tmp_path / "go on", tmp_path / "log"
    with one_that_logs(keeping_server, log) as executor:
        future = executor.submit(functions.hold, str(running), str(go_on))
        until(lambda: functions.runs(str(running)))
        until(future.running)
        keeping_server.kill()
        go_on.touch()
        until(lambda: "waits for the broker" in log.read_text())
        keeping_server.start()
        assert future.result(60) == "held"
        assert len(functions.runs(str(running))) == 1


def test_the_log_tells_for_how_long_the_broker_was_away_and_not_for_how_long_a_worker_waited(
    keeping_server, monkeypatch, caplog, name
):
    an_hour_ago = SimpleNamespace(monotonic=lambda: time.monotonic() - 3600, sleep=time.sleep)
    monkeypatch.setattr(worker, "time", an_hour_ago)  # each take began then
    with Executor(0, name, url=keeping_server.url, reconnect=0.1) as executor:
        workers = Workers(CallQueue.attach(name, url=keeping_server.url, reconnect=0.1))
        workers.begin()
        keeping_server.kill()
        until(lambda: "waits for the broker" in caplog.text)
        keeping_server.start()
        assert executor.submit(abs, -1).result(30) == 1
        workers.tell_to_end()
        workers.wait()
    (seconds,) = re.findall(r"the broker answers after (\d+) s", caplog.text)
    assert int(seconds) < 3600


def test_calls_that_cannot_be_given_back_are_run_when_the_broker_is_back(keeping_server, tmp_path):
    running, go_on, log = tmp_path / "running", tmp_path / "go on", tmp_path / "log"
    with one_that_logs(keeping_server, log) as executor:
        first = executor.submit(functions.hold, str(tmp_path / "first"), str(go_on))
        before = [executor.submit(functions.note, str(tmp_path / "before"), n) for n in range(60)]
        pid = keeping_server.process.pid
        held = executor.submit(functions.kill_and_hold, pid, str(running), str(go_on) + " then")
        behind = [executor.submit(functions.note, str(tmp_path / "behind"), n) for n in range(60)]
        until(lambda: executor._queue.qsize() == len(before) + 1 + len(behind))
        go_on.touch()
        until(lambda: "are not given back" in log.read_text())
        keeping_server.kill()  # its process is reaped
        keeping_server.start()
        (tmp_path / "go on then").touch()
        assert [future.result(60) for future in before] == list(range(60))
        assert [future.result(60) for future in behind] == list(range(60))
        assert (first.result(60), held.result(60)) == ("held", "held")
    assert len(functions.runs(str(tmp_path / "before"))) == 60
    assert len(functions.runs(str(tmp_path / "behind"))) == 60
