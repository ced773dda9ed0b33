"""The worker program runs the handlers of a queue of tasks, in processes that it replaces."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import started
from waiting import LIMIT, until

from pressure_mp import TaskQueue
from pressure_mp.executor import program

ORDERS = """
from pressure_mp import TaskQueue

orders = TaskQueue({!r}, url={!r})


@orders.worker(concurrency=2)
def double(task):
    return 2 * task.data
"""

MODULES = {
    "threads": "executors.handlers:queue",
    "asyncio": "executors.aio_handlers:queue",
    "hasty threads": "executors.handlers:hasty",
    "hasty asyncio": "executors.aio_handlers:hasty",
}


@pytest.fixture
def url(valkey):
    return valkey.url


@pytest.fixture
def queue(url, name):
    queue = TaskQueue(name, url=url)
    yield queue
    queue.delete()


@pytest.fixture
def serve(url, name, tmp_path):
    """Starts the program on a module's queue."""
    running = []

    def serve(*options, module="threads", url=url):
        environment = {"TASKS": name, "RUNS": str(tmp_path / "runs"), "PRESSURE_URL": url}
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "pressure_mp.worker", MODULES[module], *map(str, options)],
                env=started.environment(**environment),
                cwd=tmp_path,
                stderr=log,
            )
        running.append(process)
        return process

    yield serve
    for process in running:
        # A worker whose handler keeps Python's lock does not see that its starter has ended.
        with suppress(psutil.NoSuchProcess):
            workers = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            for worker in workers:
                with suppress(psutil.NoSuchProcess):
                    worker.kill()
        process.wait()


@pytest.fixture
def runs(tmp_path):
    """What the handlers noted: what they did, and the pid."""
    path = tmp_path / "runs"

    def runs(what):
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(pid) for found, pid in map(str.split, lines) if found == what]

    return runs


def log_of(tmp_path):
    return (tmp_path / "log").read_text()


def held(runs):
    """The process whose handler holds a task."""
    until(lambda: runs("hold"))
    return runs("hold")[-1]


@pytest.mark.parametrize("module", ["threads", "asyncio"])
def test_the_program_runs_the_handlers_of_a_module_until_it_is_told_to_end(
    module, serve, queue, tmp_path
):
    process = serve("-p", 2, "--health-file", tmp_path / "health", module=module)
    ids = [queue.put(["be"], result_ttl=60) for _ in range(10)]
    assert process.pid not in {queue.result(id, timeout=60) for id in ids}
    until((tmp_path / "health").exists)
    process.terminate()
    assert process.wait(60) == program.ENDED
    assert queue.qsize() == 0


@pytest.mark.parametrize("module", ["threads", "asyncio"])
def test_a_handler_that_raises_leaves_its_traceback_with_the_task(module, serve, queue):
    serve(module=module)
    id = queue.put([])
    task = until(lambda: queue.peek(id).error and queue.peek(id))
    assert "handlers.py" in task.traceback
    assert task.traceback.endswith(task.error)


def test_a_task_in_hand_is_finished_within_the_grace(serve, queue, runs, tmp_path):
    process = serve("--grace", 3600)
    id = queue.put(["hold", str(tmp_path / "go on")], result_ttl=60)
    worker = held(runs)
    process.terminate()
    until(lambda: "takes no more tasks" in log_of(tmp_path))
    (tmp_path / "go on").touch()
    assert queue.result(id, timeout=60) == worker
    assert process.wait(60) == program.ENDED


def test_a_task_that_is_not_finished_after_the_grace_is_given_back(serve, queue, runs, tmp_path):
    process = serve("--grace", 0)
    id = queue.put(["hold", str(tmp_path / "never")])
    held(runs)
    process.terminate()
    assert process.wait(60) == program.GAVE_BACK
    assert (queue.peek(id).state, queue.peek(id).deliveries) == ("R", 1)


def test_a_handler_that_keeps_pythons_lock_does_not_lose_its_task(
    serve, queue, runs, valkey, monkeypatch, tmp_path
):
    monkeypatch.setenv("LEASE", "0.6")
    serve("-p", 2)
    queue.put(["stick", 3_000_000])
    until(lambda: runs("stick"))
    seen = set()
    while not runs("done"):
        now = valkey.clock()
        seen |= {end for _, end in valkey.leases(queue.name, "tasks") if end < now}
    assert not seen
    assert "lease" not in log_of(tmp_path)


def test_another_process_runs_the_task_of_one_that_is_killed(serve, queue, runs, tmp_path):
    process = serve("-p", 1)
    id = queue.put(["hold", str(tmp_path / "go on")], result_ttl=60)
    killed = held(runs)
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(runs("hold")) == 2)
    (tmp_path / "go on").touch()
    assert queue.result(id, timeout=60) == runs("hold")[1] != killed
    assert f"worker process {killed} was killed by SIGKILL" in log_of(tmp_path)
    assert process.poll() is None


@pytest.mark.parametrize("module", ["threads", "asyncio"])
def test_a_process_ends_after_so_many_tasks_and_another_goes_on(module, serve, queue):
    serve("--max-tasks", 2, "-c", 1, module=module)
    ids = [queue.put(["be"], result_ttl=60) for _ in range(6)]
    pids = [queue.result(id, timeout=60) for id in ids]
    assert len(set(pids)) == 3
    assert pids == sorted(pids, key=pids.index)


def test_a_process_that_has_needed_too_much_memory_ends_after_its_task(serve, queue):
    serve("--max-memory", 200)
    small = queue.result(queue.put(["be"], result_ttl=60), timeout=60)
    assert queue.result(queue.put(["grow", 300_000_000], result_ttl=60), timeout=60) == small
    until(lambda: not psutil.pid_exists(small))
    assert queue.result(queue.put(["be"], result_ttl=60), timeout=60) != small


@pytest.mark.parametrize("module", ["hasty threads", "hasty asyncio"])
def test_a_process_whose_handler_takes_too_long_ends_and_the_task_fails(
    module, serve, queue, runs, tmp_path
):
    serve(module=module)
    id = queue.put("hold", tube="plain")
    late = held(runs)
    until(lambda: queue.peek(id).state == "B")
    assert queue.peek(id).error == (
        "TimeoutError: the handler took longer than its time_limit of 0.5 s"
    )
    assert queue.result(queue.put("be", tube="plain", result_ttl=60), timeout=60) != late
    assert f"worker process {late} ended: a handler exceeded" in log_of(tmp_path)


def test_a_process_that_ends_a_late_handler_runs_the_modules_handler_of_sigterm(
    serve, queue, runs, monkeypatch, tmp_path
):
    monkeypatch.setenv("CLEAN_UP", "0")
    process = serve(module="hasty threads")
    id = queue.put("hold", tube="plain")
    late = held(runs)
    until(lambda: runs("cleaned") == [late])
    assert queue.peek(id).state == "B"
    until(lambda: f"worker process {late} ended: a handler exceeded" in log_of(tmp_path))
    process.terminate()
    assert process.wait(60) == program.ENDED
    assert runs("terminated") == [late]


def test_a_process_that_ends_a_late_handler_begins_no_other_task(serve, queue, runs, monkeypatch):
    monkeypatch.setenv("CLEAN_UP", "1")
    queue.put("linger", tube="plain")
    ids = [queue.put("be", tube="plain", result_ttl=60) for _ in range(5)]
    serve("--processes", 1, module="hasty threads")
    workers = {queue.result(id, timeout=60) for id in ids}
    assert not workers & {*runs("linger")}
    assert len(runs("linger")) == len(runs("cleaned")) == 1
    assert len(runs("be")) == len(ids)


@pytest.mark.parametrize("module", ["hasty threads", "hasty asyncio"])
def test_tasks_that_a_process_has_not_begun_when_it_ends_for_another_count_as_not_delivered(
    module, serve, queue, runs, monkeypatch
):
    monkeypatch.setenv("PREFETCH", "5")
    queue.configure(max_deliveries=1)
    late = queue.put("hold", tube="plain", priority=-1)
    ids = [queue.put("be", tube="plain", result_ttl=60) for _ in range(5)]
    serve("--processes", 1, module=module)
    workers = {queue.result(id, timeout=60) for id in ids}
    assert not workers & {*runs("hold")}
    assert queue.peek(late).state == "B"


def test_a_late_handler_of_a_process_that_was_told_to_end_is_ended_in_the_same_way(
    serve, queue, runs, monkeypatch, tmp_path
):
    monkeypatch.setenv("CLEAN_UP", "0")
    process = serve("--grace", 3600, module="hasty threads")
    id = queue.put("hold", tube="plain")
    late = held(runs)
    process.terminate()
    assert process.wait(60) == program.ENDED
    assert runs("cleaned") == [late]
    assert queue.peek(id).state == "B"


def test_a_module_whose_handler_of_sigterm_takes_too_long_does_not_keep_its_process(
    serve, queue, runs, monkeypatch, tmp_path
):
    monkeypatch.setenv("CLEAN_UP", "3600")
    serve(module="hasty threads")
    queue.put("hold", tube="plain")
    late = held(runs)
    until(lambda: runs("terminated") == [late])
    until(lambda: f"worker process {late} ended: a handler exceeded" in log_of(tmp_path))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_that_ends_is_replaced_while_a_child_that_it_forked_lives(
    method, serve, queue, runs
):
    serve("--start-method", method, module="hasty threads")
    queue.put("fork", tube="plain")
    late = until(lambda: runs("forked") and runs("fork"))
    try:
        id = queue.put("be", tube="plain", result_ttl=60)
        assert queue.result(id, timeout=LIMIT) not in late
    finally:
        os.kill(runs("forked")[0], signal.SIGKILL)


def test_a_process_whose_handler_lets_nothing_else_run_is_killed_during_a_stop(serve, queue, runs):
    process = serve("--grace", 3600, module="hasty threads")
    queue.put("stick")
    until(lambda: runs("stick"))
    process.terminate()
    assert process.wait(60) == program.ENDED
    assert queue.stats().counts["R"] == 1


@pytest.mark.parametrize("module", ["hasty threads", "hasty asyncio"])
def test_a_process_whose_handler_lets_nothing_else_run_is_killed(module, serve, queue, runs):
    serve(module=module)
    id = queue.put("stick")
    until(lambda: runs("stick"))
    first, second, *_ = until(lambda: len(runs("stick")) > 1 and runs("stick"))
    assert "a handler exceeded its time_limit" in queue.peek(id).error
    assert first != second
    assert not psutil.pid_exists(first)


@pytest.mark.parametrize("options", [(), ("--max-tasks", 1)])
def test_the_program_runs_the_ready_tasks_and_ends_when_the_queue_is_shut_down(
    serve, queue, options
):
    ids = [queue.put(["be"], result_ttl=60) for _ in range(5)]
    queue.shutdown()
    assert serve("-p", 1, *options).wait(60) == program.ENDED
    assert all(queue.result(id, timeout=0) for id in ids)


def test_workers_wait_for_a_broker_that_is_away(serve, keeping_server, name, runs, tmp_path):
    queue = TaskQueue(name, url=keeping_server.url)
    serve("-p", 1, url=keeping_server.url)
    id = queue.put(["hold", str(tmp_path / "go on")], result_ttl=60)
    worker = held(runs)
    keeping_server.kill()
    (tmp_path / "go on").touch()
    until(lambda: "waits for the broker" in log_of(tmp_path), 60)
    keeping_server.start()
    assert queue.result(id, timeout=60) == worker
    assert queue.result(queue.put(["be"], result_ttl=60), timeout=60) == worker
    queue.delete()


def test_the_command_of_its_page_finds_a_module_in_the_working_directory(
    queue, url, name, tmp_path
):
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    (command,) = re.findall(r"^pressure-mp worker .*$", page, re.MULTILINE)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "orders.py").write_text(ORDERS.format(name, url))
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "pressure-mp"), *command.split()[1:]], cwd=tmp_path
    )
    assert queue.result(queue.put(2, result_ttl=60), timeout=60) == 4
    process.terminate()
    assert process.wait(60) == program.ENDED


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("executors.handlers:nothing", "names no queue"),
        ("executors.handlers:other", "is no TaskQueue, but dict"),
        ("executors.handlers:queue --tube a", "--url, --tube and --main are for executors"),
        ("executors.nobody:queue", "there is no module 'executors.nobody'"),
        ("jobs --concurrency 2", "--concurrency is for MODULE:QUEUE"),
        ("executors.handlers:idle", "has no handler"),
    ],
)
def test_a_queue_that_cannot_be_served_is_told(where, why, monkeypatch, url, name, capsys):
    monkeypatch.setenv("TASKS", name)
    monkeypatch.setenv("PRESSURE_URL", url)
    assert program.main(where.split()) == program.USAGE
    assert why in capsys.readouterr().err


def test_a_process_that_works_on_one_task_ends_when_that_is_cancelled(serve, queue, runs, tmp_path):
    serve("-p", 1)
    id = queue.put(["hold", str(tmp_path / "never")], result_ttl=60)
    worker = held(runs)
    assert queue.cancel(id)
    until(lambda: not psutil.pid_exists(worker))
    assert queue.result(queue.put(["be"], result_ttl=60), timeout=60) != worker
    assert len(runs("hold")) == 1
