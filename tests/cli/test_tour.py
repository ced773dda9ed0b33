"""``pressure-mp demo``, without a terminal and in one."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pexpect
from cli.runs import MAIN, environment, finished, python, running
from waiting import LIMIT, lasting

from pressure_mp.cli.demos import tour

#: A few of the files, and little time to read.
SHORT = (
    "from pressure_mp.cli.demos import crash, tour; "
    "tour.EACH *= 15; crash.WORK = crash.READING = 0.01; "
)


def test_a_consumer_dies_and_its_item_comes_back_and_the_pipelines_count_the_same(valkey, name):
    run = finished(python(SHORT + MAIN, "demo", "--url", valkey.url), name)
    assert (run.returncode, run.stderr) == (0, "")
    killed = re.search(r"south: process (\d+) killed while it worked on order 4\n", run.stdout)
    assert (
        f"why: The queue is full (5 of 5) and its only known consumer, pid {killed[1]} on host "
    ) in run.stdout
    again = re.findall(r"south: process (\d+) works on order 4\n", run.stdout)
    assert len(again) == 2
    assert again[0] == killed[1] != again[1]
    assert "16 orders were put, and 16 were done: none is lost.\n" in run.stdout
    assert f"\n\n{tour.DIFF}\n\n" in run.stdout
    equal, turns, result = run.stdout.splitlines()[-3:]
    assert re.fullmatch(r"Equal: [\d,]+ tokens each time\.", equal)
    assert re.fullmatch(r"On \d+ cores, in turns:", turns)
    assert re.fullmatch(
        r"pressure_mp\.Queue [\d.]+ \+ [\d.]+ s, multiprocessing\.Queue [\d.]+ \+ [\d.]+ s\.",
        result,
    )
    with valkey.client() as client:
        assert lasting(client, f"{name}*") == []


def test_in_a_terminal_it_is_one_picture_after_the_other(valkey, name):
    environ = {**environment(name), "TERM": "xterm", "PRESSURE_URL": ""}
    command, *args = python(SHORT + MAIN, "demo", "--url", valkey.url)
    terminal = pexpect.spawn(
        command, args, env=environ, dimensions=(30, 80), timeout=LIMIT, encoding="utf-8"
    )
    terminal.logfile_read = io.StringIO()
    terminal.expect(r"killed while it worked on order 4")
    terminal.expect(r"why: The queue is full \(5 of 5\)")
    terminal.expect(r"done .*16/16")
    terminal.expect(r"\+from pressure_mp import JoinableQueue, Queue")
    terminal.expect(r"multiprocessing\.Queue .*\d+/\d+ +[\d.]+ s")
    terminal.expect(r"Equal: [\d,]+ tokens")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    written = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", terminal.logfile_read.getvalue())
    assert [line for line in re.split(r"[\r\n]+", written) if len(line) > 80] == []


def test_ctrl_c_leaves_no_process_and_no_queue(valkey, name):
    with running(python(MAIN, "demo", "--url", valkey.url), name) as run:
        run.line_with("works on order 2")
        run.interrupt()
        status, _, errors = run.outcome()
        assert (status, errors) == (130, "Interrupted.\n")
        run.nothing_is_left()
    with valkey.client() as client:
        assert lasting(client, f"{name}*") == []


def test_the_diff_is_that_of_the_readme():
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert f"```diff\n{tour.DIFF}\n```" in readme
