"""The worker program: it serves a named executor, and ends as it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import started
from executors import functions
from waiting import until

from pressure_mp import Executor
from pressure_mp.executor import program


@pytest.fixture
def url(valkey):
    return valkey.url


@pytest.fixture
def executor(url, name):
    executor = Executor(0, name, url=url)
    yield executor
    executor.shutdown(wait=False, cancel_futures=True)
    executor._queue.delete()


@pytest.fixture
def start(url, name, tmp_path):
    """Starts the program; what still runs in the end is killed, and its children end by that."""
    running = []

    def start(*options, stderr=None):
        process = subprocess.Popen(
            [sys.executable, "-m", "pressure_mp.worker", name, "--url", url, *map(str, options)],
            env=started.environment(),
            cwd=tmp_path,
            stderr=stderr,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def files(tmp_path):
    return SimpleNamespace(runs=str(tmp_path / "runs"), go_on=tmp_path / "go on")


def test_a_signal_lets_it_finish_what_is_in_hand(start, executor, files):
    process = start("-c", 2, "--initializer", "executors.functions:begin_well")
    held = executor.submit(functions.hold, files.runs, str(files.go_on))
    until(lambda: functions.runs(files.runs))
    assert executor.submit(functions.get_status).result(60) == "well"
    process.send_signal(signal.SIGTERM)
    files.go_on.touch()
    assert held.result(60) == "held"
    assert process.wait(60) == program.ENDED


def test_after_the_grace_calls_are_given_back_to_others(start, executor, files):
    process = start("--grace", 0)
    held = executor.submit(functions.hold, files.runs, str(files.go_on))
    until(lambda: functions.runs(files.runs))
    process.terminate()
    assert process.wait(60) == program.GAVE_BACK
    files.go_on.touch()
    start()
    assert held.result(60) == "held"
    assert len(functions.runs(files.runs)) == 2


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


def test_it_says_that_it_is_well_and_ends_with_the_executor(start, executor, tmp_path):
    health = tmp_path / "health"
    process = start("--health-file", health)
    until(health.exists)
    executor._queue.shutdown()
    assert process.wait(60) == program.ENDED


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
        told = command.replace("redis://broker.example:6379", url).replace("-c 8", "-c 1")
        process = subprocess.Popen(told.replace("reports", name).split(), env=environment)
        assert executor.submit(abs, -1).result(60) == 1
        process.terminate()
        assert process.wait(60) == program.ENDED


@pytest.mark.parametrize("arguments", [[], ["a name", "-c", "0"], ["a name", "--grace", "x"]])
def test_wrong_arguments_are_told(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        program.main(arguments)
    assert caught.value.code == program.USAGE
    assert "usage: python -m pressure_mp.worker" in capsys.readouterr().err


def test_the_command_has_it_too():
    pressure_mp = os.path.join(os.path.dirname(sys.executable), "pressure-mp")
    done = subprocess.run([pressure_mp, "worker", "--help"], capture_output=True, text=True)
    assert done.stdout.startswith("usage: pressure-mp worker")
    assert "Exit codes" in done.stdout
