"""Worker processes, here and elsewhere, at each kind of server: what of them concerns an engine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest
import started
from executors import functions
from waiting import until

from pressure_mp import CallAborted, Executor, TaskQueue, WorkerLost, aio
from pressure_mp.executor import program as worker_program

# Since Python 3.12 a fork warns when there are threads, as there are when a worker is replaced.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture
def url(server_url):
    return server_url


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


def test_the_death_of_a_worker_uses_up_at_most_one_delivery_of_other_calls(make, tmp_path):
    executor = make(2)
    paths = [str(tmp_path / f"runs {number}") for number in range(3)]
    before = [executor.submit(abs, -one) for one in range(60)]
    deadly = [executor.submit(functions.die, path) for path in paths]
    behind = [executor.submit(abs, -one) for one in range(60)]
    for future in deadly:
        with pytest.raises(WorkerLost, match="was given to 3 workers"):
            future.result(60)
    # One delivery, and no more, may be that of a worker that died before it had begun the call.
    assert {len(functions.runs(path)) for path in paths} <= {2, 3}
    for futures in before, behind:
        assert [future.result(60) for future in futures] == list(range(60))


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


def test_the_workers_of_a_killed_program_end_and_what_was_queued_is_dropped(
    program, files, any_server
):
    process = program("holds", files.runs, files.go_on)
    name = process.stdout.readline().strip()
    (worker,) = until(lambda: functions.runs(files.runs))
    assert any_server.kept(name)
    process.kill()
    process.wait()
    files.go_on.touch()
    until(lambda: not psutil.pid_exists(worker))
    assert functions.runs(files.runs) == [worker]
    until(lambda: not any_server.kept(name))  # nor what came of the call
    process.stdout.close()
    process.stderr.close()


def test_a_client_may_end_whose_workers_are_elsewhere(program, name, url):
    id = program("leaves", name).communicate(timeout=60)[0].strip()
    with Executor.attach(name, 1, url=url) as executor:
        future = executor.future(id)
        assert executor.submit(abs, -6).result(60) == 6
        assert future.result(60) == 5
        assert asyncio.run(await_result(name, url, id)) == 5
        executor._queue.delete()


async def await_result(name, url, id):
    async with await aio.Executor.attach(name, url=url) as executor:
        return await executor.result(id)


def test_so_many_calls_of_a_key_run_at_a_time_in_the_workers_of_all(make, name, url, files):
    executors = [make(2, name=name, per_key=2) for _ in range(2)]
    held = [
        executor.options(key="tenant").submit(functions.hold, files.runs, str(files.go_on))
        for executor in executors * 2
    ]
    until(lambda: len(functions.runs(files.runs)) == 2)
    for executor in executors:
        # The worker that runs this is idle, and would have taken a call of the tenant before.
        idle = executor.options(key="another").submit(functions.pid).result(60)
        assert idle not in functions.runs(files.runs)
    assert len(functions.runs(files.runs)) == 2
    files.go_on.touch()
    assert [future.result(60) for future in held] == ["held"] * 4
    TaskQueue.attach(name, url=url).delete()


def test_a_signal_lets_it_finish_the_call_that_it_runs(start, executor, files):
    process = start("-p", 2, "--initializer", "executors.functions:begin_well")
    held = executor.submit(functions.hold, files.runs, str(files.go_on))
    until(lambda: functions.runs(files.runs))
    assert executor.submit(functions.get_status).result(60) == "well"
    process.send_signal(signal.SIGTERM)
    files.go_on.touch()
    assert held.result(60) == "held"
    assert process.wait(60) == worker_program.ENDED


def test_workers_elsewhere_begin_with_a_module_and_an_initializer(start, executor):
    start("--preload", "colorsys", "--initializer", "executors.functions:begin_well")
    assert executor.submit(functions.get_status).result(60) == "well"
    assert executor.submit(functions.has_imported, "colorsys").result(60)
    assert not executor.submit(functions.has_imported, "sndhdr").result(60)


def test_a_worker_elsewhere_goes_on_when_a_call_exits(start, executor):
    start()
    worker = executor.submit(functions.pid).result(60)
    for leave in (sys.exit, functions.leave, functions.leave_event_loop):
        with pytest.raises(SystemExit) as caught:
            executor.submit(leave, 3).result(60)
        assert caught.value.code == 3
    assert executor.submit(functions.pid).result(60) == worker


def test_a_coroutine_that_runs_elsewhere_goes_on_when_its_await_is_cancelled(
    start, name, url, files
):
    async def main():
        async with aio.Executor(0, name, url=url) as executor:
            hold = functions.hold_event_loop, files.runs, str(files.go_on)
            start()
            first, second = (asyncio.create_task(executor.submit(*hold)) for _ in range(2))
            await asyncio.to_thread(until, lambda: functions.runs(files.runs))
            queue = executor._opening.result()._queue
            await asyncio.to_thread(until, lambda: queue.qsize() == 1)
            (call,) = queue.list("T")
            for task in (first, second):
                task.cancel()
            await asyncio.wait([first, second])
            assert first.cancelled()
            assert second.cancelled()
            await asyncio.to_thread(until, lambda: queue.qsize() == 0)
            files.go_on.touch()
            assert await executor.result(call.id) == "held"
            assert await executor.submit(functions.double, 21) == 42
            assert len(functions.runs(files.runs)) == 1
        TaskQueue.attach(name, url=url).delete()

    asyncio.run(main())


def test_after_the_grace_calls_are_given_back_to_others(start, executor, files):
    process = start("--grace", 0)
    held = executor.submit(functions.hold, files.runs, str(files.go_on))
    until(lambda: functions.runs(files.runs))
    process.terminate()
    assert process.wait(60) == worker_program.GAVE_BACK
    files.go_on.touch()
    start()
    assert held.result(60) == "held"
    assert len(functions.runs(files.runs)) == 2


CALLER = """
import pickle, sys
from pressure_mp import Executor

class Answer:
    def __init__(self, value):
        self.value = value

def ask(value):
    return Answer(value)

if __name__ == "__main__":
    with Executor.attach(sys.argv[1], serializer=eval(sys.argv[2])) as executor:
        answer = executor.submit(ask, 42).result(60)
        print(type(answer) is Answer, answer.value)
"""


@pytest.mark.parametrize(("serializer", "knows"), [("pickle", True), ("'pickle'", False)])
def test_functions_of_a_program_are_found_by_its_name_or_come_along(
    serializer, knows, start, executor, tmp_path, url, name
):
    caller = tmp_path / "caller.py"
    caller.write_text(CALLER)
    start(*(("--main", caller) if knows else ()))
    done = subprocess.run(
        [sys.executable, str(caller), name, serializer],
        env=started.environment(PRESSURE_URL=url),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("True 42\n", "")
