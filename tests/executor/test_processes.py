"""Worker processes: how they are started and end, and what becomes of calls when they die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest
import started
from brokers.servers import Server
from executors import functions
from waiting import lasting, until

from pressure_mp import CallAborted, Executor, ExecutorBroken, WorkerLost

# Since Python 3.12 a fork warns when there are threads, as there are when a worker is replaced.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

#: What of processes concerns an engine. The rest is the same with every broker.
EVERY_BROKER = pytest.mark.parametrize("broker", ["valkey", "debian_redis", "postgres"])


@pytest.fixture
def broker():
    return "valkey"


@pytest.fixture
def url(request, broker):
    server = request.getfixturevalue(broker)
    return server.limited_url if broker == "postgres" else server.url


@pytest.fixture
def make(url):
    """Makes executors, which are shut down in the end."""
    made = []

    def make(max_workers=1, method="fork", **options):
        context = multiprocessing.get_context(method)
        made.append(Executor(max_workers, mp_context=context, url=url, **options))
        return made[-1]

    yield make
    for executor in made:
        executor.shutdown(cancel_futures=True)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_call_whose_worker_dies_runs_again_in_another(make, method, tmp_path):
    executor = make(method=method)
    path = str(tmp_path / "runs")
    assert executor.submit(functions.die_once, path).result(60) == "done"
    assert len(set(functions.runs(path))) == 1
    assert executor.submit(functions.pid).result(60) not in functions.runs(path)


@EVERY_BROKER
def test_a_call_that_kills_every_worker_fails_alone(make, tmp_path):
    executor = make(2, max_deliveries=2)
    path = str(tmp_path / "runs")
    deadly = executor.submit(functions.die, path, signal.SIGSEGV)
    others = [executor.submit(abs, -one) for one in range(5)]
    with pytest.raises(WorkerLost, match=r"was given to 2 workers.*killed by SIGSEGV") as caught:
        deadly.result(60)
    assert isinstance(caught.value, BrokenProcessPool)
    assert len(set(functions.runs(path))) == 2
    assert [future.result(60) for future in others] == list(range(5))
    assert not executor._broken


@EVERY_BROKER
def test_a_killed_worker_frees_the_place_of_its_key(make, tmp_path):
    executor = make(2, per_key=1, max_deliveries=1)
    tenant = executor.options(key="tenant")
    running = str(tmp_path / "running")
    held = tenant.submit(functions.hold, running, "never")
    (holder,) = until(lambda: functions.runs(running))
    others = [tenant.submit(abs, -one) for one in range(3)]
    until(lambda: executor._queue.qsize() == 3)
    assert "of key 'tenant' 1 task is taken, and 3 wait" in str(executor._queue.why_blocked())
    os.kill(holder, signal.SIGKILL)
    with pytest.raises(WorkerLost):
        held.result(60)
    assert [future.result(60) for future in others] == list(range(3))


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


@EVERY_BROKER
def test_a_running_call_can_be_aborted(make, tmp_path):
    executor = make()
    running = tmp_path / "running"
    future = executor.submit(functions.hold, str(running), "never")
    until(future.running)
    until(lambda: functions.runs(str(running)))
    assert executor.abort(future)
    with pytest.raises(CallAborted, match="removed while a worker had it"):
        future.result(60)
    assert executor.submit(abs, -1).result(60) == 1
    assert len(functions.runs(str(running))) == 1
    assert not executor.abort(future)


def test_a_shut_down_executor_leaves_nothing_behind(make, valkey):
    executor = make(2)
    assert list(executor.map(abs, range(20))) == list(range(20))
    pids = list(executor._processes)
    executor.shutdown()
    assert not any(map(psutil.pid_exists, pids))
    with valkey.client() as client:
        assert lasting(client, f"*{executor.name}*") == []


PROGRAM = """
import sys, time
from pressure_mp import Executor
from executors import functions

def here(path):
    functions.note(path)
    return functions.pid()

if __name__ == "__main__":
    if sys.argv[1] == "leaves":
        print(Executor(0, sys.argv[2]).submit(abs, -5).id)
        sys.exit()
    if sys.argv[1] == "deletes":
        with Executor(0, sys.argv[2]) as executor:
            assert executor.submit(abs, -5).cancel()
        executor._queue.attach(sys.argv[2]).delete()
        sys.exit()
    executor = Executor(1)
    if sys.argv[1] == "ends":
        executor.submit(here, sys.argv[2])
        executor.shutdown(wait=False)
    else:
        executor.submit(functions.hold, sys.argv[2], sys.argv[3])
        executor.submit(here, sys.argv[2])
        print(executor.name, executor.url, flush=True)
        time.sleep(3600)
"""


@pytest.fixture
def program(tmp_path, url):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)

    def start(*args):
        return subprocess.Popen(
            [sys.executable, str(path), *map(str, args)],
            env=started.environment(PRESSURE_URL=url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_a_program_ends_when_its_calls_are_done(program, tmp_path):
    process = program("ends", tmp_path / "runs")
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
    assert len(functions.runs(str(tmp_path / "runs"))) == 1


@EVERY_BROKER
def test_the_workers_of_a_killed_program_end_and_what_was_queued_is_dropped(program, tmp_path):
    path, go_on = tmp_path / "runs", tmp_path / "go on"
    process = program("holds", path, go_on)
    process.stdout.readline()
    (worker,) = until(lambda: functions.runs(str(path)))
    process.kill()
    process.wait()
    go_on.touch()
    until(lambda: not psutil.pid_exists(worker))
    assert functions.runs(str(path)) == [worker]
    process.stdout.close()
    process.stderr.close()


def test_a_program_that_deletes_a_shut_down_executor_ends_without_a_word(program, name):
    process = program("deletes", name)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_a_client_may_end_whose_workers_are_elsewhere(program, name, url):
    id = program("leaves", name).communicate(timeout=60)[0].strip()
    with Executor.attach(name, 1, url=url) as executor:
        future = executor.future(id)
        assert executor.submit(abs, -6).result(60) == 6
        assert future.result(60) == 5
        executor._queue.delete()


@pytest.fixture
def keeping_server():
    """A server that keeps what it is told."""
    server = Server("valkey", options=("--appendonly", "yes", "--appendfsync", "always"))
    yield server.start()
    server.stop()


def test_what_was_done_while_the_broker_was_away_is_told_when_it_is_back(keeping_server, tmp_path):
    running, go_on, log = tmp_path / "running", tmp_path / "go on", tmp_path / "log"
    with Executor(
        1,
        url=keeping_server.url,
        mp_context=multiprocessing.get_context("forkserver"),
        initializer=functions.log_to,
        initargs=(str(log),),
        reconnect=0.1,
    ) as executor:
        future = executor.submit(functions.hold, str(running), str(go_on))
        until(lambda: functions.runs(str(running)))
        until(future.running)
        keeping_server.kill()
        go_on.touch()
        until(lambda: "waits for the broker" in log.read_text())
        keeping_server.start()
        assert future.result(60) == "held"
        assert len(functions.runs(str(running))) == 1
