"""The command in a real terminal, wide and narrow, and in the foreground."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from functools import partial

import pexpect
import pytest
from cli.runs import MAIN, environment, python
from ports import free_port
from waiting import LIMIT, Background, until

from pressure_mp import Queue, TaskQueue


@pytest.fixture
def spawn(valkey, name):
    """Starts a command in a terminal of so many columns."""
    environ = {**environment(name), "PRESSURE_URL": valkey.url, "TERM": "xterm"}
    for variable in ("COLUMNS", "LINES"):  # which pytest-xdist sets
        environ.pop(variable, None)

    def start(columns, *arguments):
        command, *args = python(MAIN, *arguments)
        return pexpect.spawn(
            command, args, env=environ, dimensions=(20, columns), timeout=LIMIT, encoding="utf-8"
        )

    return start


def lines(terminal):
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.before)  # bold, and not
    return [line.rstrip() for line in text.splitlines()]


def test_tables_are_as_wide_as_the_terminal(spawn, valkey, name):
    Queue(3, "jobs", url=valkey.url, prefix=name).put("x")
    TaskQueue("t" * 60, url=valkey.url, prefix=name).open()
    head, *rows = lines(spawn(120, "ls", "--sort", "name"))
    assert re.split(r"\s{2,}", head)[:4] == ["name", "kind", "depth", "bound"]
    assert rows[0].split() == ["jobs", "fifo", "1", "3", "0", "0", "0", "0", "open"]
    usual, *_ = lines(spawn(80, "ls", "--sort", "name"))
    assert usual.split() == ["name", "kind", "depth", "bound", "in", "flight", "rejected", "state"]
    narrow = lines(spawn(40, "ls", "--sort", "name"))
    assert narrow[0].split() == ["name", "depth", "bound"]
    assert narrow[2].startswith("ttt")
    assert all(len(line) <= 40 for line in narrow)
    watched = "\n".join(lines(spawn(40, "top", "-n", "1")))
    assert re.search(r"name +depth +bound +waiting", watched)


def test_in_a_terminal_ls_says_that_there_is_no_queue(spawn, valkey, name):
    assert " ".join(lines(spawn(200, "ls", "jobs*"))).startswith("No such queue at redis://")


def test_a_command_that_deletes_a_queue_asks_first(spawn, valkey, name):
    queue = Queue(0, "jobs", url=valkey.url, prefix=name)
    queue.open()
    for answer, status in (("n", 1), ("\x03", 130), ("y", 0)):
        terminal = spawn(80, "delete", "jobs")
        terminal.expect(r"Delete 'jobs' \(0 items\) for all clients and for good\? \[y/N\]: ")
        terminal.sendline(answer)
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert terminal.exitstatus == status
        assert queue.exists() == bool(status)


def test_top_shows_that_consumers_are_slow_and_obeys_its_keys(spawn, valkey, name):
    options = {"url": valkey.url, "prefix": name}
    queue = Queue(1, "full", **options)
    queue.open()
    queue.put("x")
    Queue(0, "other", **options).open()
    putting = Background(queue.put, "y")
    until(lambda: queue.why_blocked().put.holder)
    terminal = spawn(100, "top", "--interval", "0.1")
    terminal.expect("2 queues, sorted by waiting; the consumers of full are slow")
    terminal.expect(r"full\s+1\s+1\s+\S*█\s+0\s+0\s+1 put \S+ s\s+its consumers are slow")
    terminal.send("s")
    terminal.expect("2 queues, sorted by depth")
    terminal.send("p")
    terminal.expect("by depth, paused")
    terminal.send("p/oth\r")
    terminal.expect("1 queue, sorted by depth")
    terminal.send("q")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert queue.get() == "x"
    putting.result()


def test_a_command_whose_output_has_no_reader_ends_and_writes_no_error(valkey, name):
    for number in range(50):
        Queue(0, f"jobs-{number}" + "x" * 2000, url=valkey.url, prefix=name).open()
    environ = {**environment(name), "PRESSURE_URL": valkey.url}
    reader = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    listing = subprocess.Popen(
        python(MAIN, "ls"), env=environ, stdout=reader.stdin, stderr=subprocess.PIPE
    )
    reader.stdin.close()
    assert listing.communicate(timeout=LIMIT) == (None, b"")
    assert listing.returncode == 141
    reader.stdout.close()
    reader.wait()


def test_the_shell_completes_subcommands(name):
    environ = {**environment(name), "_PRESSURE_MP_COMPLETE": "bash_complete"}
    environ |= {"COMP_WORDS": "pressure-mp re", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'pressure-mp'; " + MAIN
    run = subprocess.run(python(code), env=environ, capture_output=True, text=True, check=True)
    assert run.stdout == "plain,resume\nplain,requeue\n"


def test_a_server_is_served_until_it_is_told_to_end(name, tmp_path):
    port = free_port()
    environ = {**environment(name), "PRESSURE_SERVE_PASSWORD": 'a "password"'}
    command = python(MAIN, "serve", "--port", port, "--directory", tmp_path / "data")
    for kept in ([], ["kept"]):
        serving = subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            url = f"redis://:a%20%22password%22@127.0.0.1:{port}"
            with Queue(0, "jobs", url=url, prefix=name) as queue:
                assert queue.get_many(1, timeout=LIMIT) == kept if kept else queue.empty()
                queue.put("kept")
            serving.send_signal(signal.SIGTERM)
            _, told = serving.communicate(timeout=LIMIT)
            assert serving.returncode == 0
            assert (
                told
                == f"The server runs. To use it: export PRESSURE_URL=redis://:PASSWORD@127.0.0.1:{port}/0\n"
            )
        finally:
            serving.kill()
            serving.communicate()


@pytest.mark.parametrize("first", ["serve", "embedded"])
def test_no_second_server_is_served_from_one_directory(name, tmp_path, first):
    """Both would write to the same file, and the items of one would be gone."""
    serve = ("serve", "--directory", tmp_path / "data", "--port")
    url, serving = f"embedded://{tmp_path}/data", None
    if first == "serve":
        port = free_port()
        serving = subprocess.Popen(python(MAIN, *serve, port), stderr=subprocess.DEVNULL)
        url = f"redis://127.0.0.1:{port}"
    try:
        with Queue(0, "jobs", url=url, prefix=name) as queue:
            queue.put("kept")
            run = partial(subprocess.run, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
            second = run(python(MAIN, *serve, free_port()))
            assert second.returncode == 1
            assert f"a server runs already that has its data in {tmp_path}/data" in second.stderr
            assert queue.get() == "kept"
    finally:
        if serving is not None:
            serving.kill()
            serving.communicate()
