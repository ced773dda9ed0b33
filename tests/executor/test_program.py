"""The worker program: it serves a named executor, and ends as it is told to."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing import current_process
from pathlib import Path

import psutil
import pytest
import started
from executors import functions
from waiting import until

from pressure_mp import Executor, TaskQueue
from pressure_mp.executor import program


@pytest.fixture
def url(valkey):
    return valkey.url


def test_a_second_signal_ends_the_grace(start, executor, files):
    process = start("--grace", 3600)
    executor.submit(functions.hold, files.runs, "never")
    until(lambda: functions.runs(files.runs))
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)  # two of a kind might come as one
    assert process.wait(60) == program.GAVE_BACK
    until(lambda: executor._queue.qsize() == 1)


def test_workers_that_are_killed_while_they_begin_give_no_call_back(start, executor):
    process = start("--grace", 0, "--initializer", "executors.functions:begin_never")
    until(lambda: psutil.Process(process.pid).children())
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == program.ENDED


def test_an_aborted_call_ends_in_a_worker_elsewhere(start, executor, files):
    start()
    future = executor.submit(functions.hold, files.runs, "never")
    until(lambda: functions.runs(files.runs))
    until(future.running)
    assert executor.abort(future)
    assert executor.submit(abs, -1).result(60) == 1
    assert len(functions.runs(files.runs)) == 1


def test_its_exit_code_says_that_workers_cannot_start_and_its_log_why(start, executor, tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        options = ("--initializer", "executors.functions:begin_badly", "--log-json")
        process = start(*options, stderr=stderr)
        assert process.wait(60) == program.BROKEN
    begun, *failed, ended = map(json.loads, log.read_text().splitlines())
    assert (begun["level"], begun["process"], begun["logger"]) == (
        "info",
        process.pid,
        "pressure_mp",
    )
    assert ended["level"] == "critical"
    assert "initializer" in ended["message"]
    assert {one["logger"] for one in failed} == {"concurrent.futures"}  # in the worker itself
    assert all(one["error"].startswith("Traceback") for one in failed)


def test_workers_without_the_module_that_is_to_be_preloaded_cannot_start(start, executor):
    assert start("--preload", "executors.nowhere").wait(60) == program.BROKEN


#: The program, with short times: between two looks at the broker, until it does not answer, and
#: between two lines about that.
HASTY = """
import sys
import time
from functools import partial
from pressure_mp.sync.tasks import outages
from pressure_mp.executor import program

program._INTERVAL = 0.02
outages._INTERVAL = 0
program.CallQueue.attach = partial(program.CallQueue.attach, reconnect=0.1)
if __name__ == "__main__":
    sys.exit(program.main(sys.argv[1:]))
"""


FAILS_WHEN_IT_LOOKS = """
def fail(*_):
    raise OSError("it cannot look")

program.Program._is_there = fail
"""


@pytest.fixture
def hasty(tmp_path):
    path = tmp_path / "hasty.py"
    path.write_text(HASTY)
    return [sys.executable, str(path)]


def test_its_exit_code_says_that_the_broker_did_not_answer_for_too_long(hasty, name):
    options = ("--url", "redis://127.0.0.1:1", "--max-outage", "1")
    began = time.monotonic()
    done = subprocess.run([*hasty, name, *options], capture_output=True, text=True, timeout=60)
    assert time.monotonic() - began >= 1
    assert done.returncode == program.FAILED
    assert "s for the broker" in done.stderr
    assert "127.0.0.1:1" in done.stderr.splitlines()[-1]


def test_its_health_file_is_touched_only_while_the_broker_answers(
    hasty, name, keeping_server, tmp_path
):
    health, log = tmp_path / "health", tmp_path / "log"
    executor = Executor(0, name, url=keeping_server.url)

    def failed_looks():
        return log.read_text().count(f"WARNING executor {name!r} ")

    with log.open("wb") as stderr:
        options = ("--url", keeping_server.url, "--health-file", str(health))
        process = subprocess.Popen(
            [*hasty, name, *options], env=started.environment(), stderr=stderr
        )
    until(health.exists)
    health.unlink()
    until(health.exists)
    keeping_server.kill()
    until(failed_looks)
    health.unlink()
    looks = failed_looks()
    until(lambda: failed_looks() > looks + 1)
    assert not health.exists()
    keeping_server.start()
    until(health.exists)
    process.terminate()
    assert process.wait(60) == program.ENDED
    executor._queue.delete()


def test_the_program_goes_on_when_its_health_file_can_no_longer_be_touched(
    hasty, executor, url, tmp_path
):
    health, log = tmp_path / "folder" / "health", tmp_path / "log"
    health.parent.mkdir()

    def looks_untold():
        return log.read_text().count("the health file cannot be touched")

    with log.open("wb") as stderr:
        options = ("--url", url, "--health-file", str(health))
        process = subprocess.Popen(
            [*hasty, executor.name, *options], env=started.environment(), stderr=stderr
        )
    until(health.exists)
    for number in (1, 2):  # it is told each time that this begins
        shutil.rmtree(health.parent)
        until(lambda number=number: looks_untold() == number)
        runs = str(tmp_path / f"runs {number}")
        assert executor.submit(functions.die_once, runs).result(60) == "done"
        assert looks_untold() == number
        health.parent.mkdir()
        until(health.exists)
    process.terminate()
    assert process.wait(60) == program.ENDED


def test_its_workers_end_when_it_fails(hasty, executor, url, tmp_path):
    failing = tmp_path / "failing.py"
    failing.write_text(
        Path(hasty[1]).read_text().replace("if __name__", f"{FAILS_WHEN_IT_LOOKS}\nif __name__")
    )
    done = subprocess.run(
        [sys.executable, str(failing), executor.name, "--url", url, "--grace", "3600"],
        env=started.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == program.FAILED
    assert done.stderr.endswith("OSError: it cannot look\n")


def test_the_program_touches_its_health_file_and_ends_when_the_queue_is_shut_down(
    start, executor, tmp_path
):
    health = tmp_path / "health"
    process = start("--health-file", health)
    until(health.exists)
    executor._queue.shutdown()
    assert process.wait(60) == program.ENDED


def test_the_commands_of_its_page_serve_an_executor(executor, url, name):
    page = (Path(__file__).parents[2] / "docs" / "executor.md").read_text()
    commands = re.findall(
        r"^(?:pressure-mp|python -m pressure_mp\.)\S* .*reports.*$", page, re.MULTILINE
    )
    assert len(commands) == 2
    environment = {
        **started.environment(),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for command in commands:
        told = command.replace("redis://broker.example:6379", url).replace("-p 8", "-p 1")
        process = subprocess.Popen(told.replace("reports", name).split(), env=environment)
        assert executor.submit(abs, -1).result(60) == 1
        process.terminate()
        assert process.wait(60) == program.ENDED


def test_the_program_takes_no_tasks_of_a_queue_that_no_executor_made(start, name, url):
    queue = TaskQueue(name, url=url)
    queue.put("hello")
    assert start().wait(60) == program.FAILED
    assert [task.deliveries for task in queue.list("R")] == [0]
    queue.delete()


def test_the_program_takes_only_the_calls_of_its_tube(start, executor):
    outside = executor.submit(abs, -1)
    start("--tube", "part")
    assert executor.options(tube="part").submit(abs, -2).result(60) == 2
    assert outside.cancel()


@pytest.mark.parametrize(
    "arguments",
    [[], ["a name", "-p", "0"], *(["a name", f"--grace={grace}"] for grace in ("x", "-1", "nan"))],
)
def test_wrong_arguments_are_told(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        program.main(arguments)
    assert caught.value.code == program.USAGE
    assert "usage: python -m pressure_mp.worker" in capsys.readouterr().err


def test_a_tube_that_cannot_be_is_told(capsys):
    assert program.main(["a name", "--tube", ""]) == program.USAGE
    assert "a tube's name has 1 to 255 characters" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["nowhere/health", "file/health"])
def test_a_health_file_that_cannot_be_written_is_told(where, url, capsys, tmp_path):
    (tmp_path / "file").touch()
    health = str(tmp_path / where)
    assert program.main(["a name", "--url", url, "--health-file", health]) == program.USAGE
    assert f"the health file {health!r} cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["memory://", "embedded://"])
def test_a_broker_that_no_other_program_can_use_is_refused(url, capsys, monkeypatch):
    monkeypatch.delenv("PRESSURE_EMBEDDED_SOCKET", raising=False)
    monkeypatch.delitem(current_process()._config, "pressure_mp_embedded", raising=False)
    assert program.main(["a name", "--url", url]) == program.USAGE
    assert f"no other program can have queues at {url}: " in capsys.readouterr().err


def test_the_command_has_it_too():
    pressure_mp = os.path.join(os.path.dirname(sys.executable), "pressure-mp")
    done = subprocess.run([pressure_mp, "worker", "--help"], capture_output=True, text=True)
    assert done.stdout.startswith("usage: pressure-mp worker")
    assert "Exit codes" in done.stdout
