"""put and get, as processes of their own, at the ends of real pipes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from cli.runs import HEARS_INTERRUPTS, MAIN, environment, python
from waiting import LIMIT, until

from pressure_mp import LifoQueue, PriorityQueue, Queue, TaskQueue
from pressure_mp.cli import statuses

#: A line that fills a good part of a pipe.
LINE = "x" * 1000


@pytest.fixture
def run(valkey, name):
    """Starts a command; its standard error is kept."""
    environ = {**environment(name), "PRESSURE_URL": valkey.url}

    def start(*arguments, **more):
        command = python(MAIN, *arguments, first=HEARS_INTERRUPTS)
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environ} | more
        return subprocess.Popen(command, **more)

    return start


@pytest.fixture
def make(valkey, name):
    def open_queue(kind=Queue, maxsize=0, **options):
        options = {"url": valkey.url, "prefix": name, "serializer": "text", **options}
        return kind(maxsize, "jobs", **options)

    return open_queue


def outcome(process, text=None):
    output, errors = process.communicate(text, timeout=LIMIT)
    return process.returncode, output, errors.decode()


def numbered(number):
    return [f"{place} {LINE}" for place in range(number)]


def test_a_pipeline_of_commands_passes_every_line_in_order_at_back_pressure(run, make, name):
    lines = "".join(f"{number}\n" for number in range(5000)).encode()
    queue = make(maxsize=20)
    putting = run("put", "jobs", "--maxsize", 20, "--shutdown", stdin=subprocess.PIPE)
    getting = run("get", "jobs")
    doubling = subprocess.Popen(
        ["awk", "{ print 2 * $1 }"], stdin=getting.stdout, stdout=subprocess.PIPE
    )
    second = run("put", "doubled", "--shutdown", stdin=doubling.stdout)
    assert outcome(putting, lines) == (0, b"", "")
    assert getting.wait(LIMIT) == second.wait(LIMIT) == doubling.wait(LIMIT) == 0
    last = run("get", "doubled")
    expected = b"".join(b"%d\n" % (2 * number) for number in range(5000))
    assert outcome(last) == (0, expected, "")
    assert queue.stats().in_flight == 0
    for process in (getting, second, doubling):
        process.communicate()


@contextmanager
def stuck(run, queue) -> Iterator[subprocess.Popen[bytes]]:
    """A get whose reader reads nothing: it has written a part of what it fetched."""
    queue.put_many(numbered(500))
    getting = run("get", "jobs")
    until(lambda: queue.stats().in_flight)
    until(lambda: _is_full(getting.stdout))
    yield getting
    getting.stderr.close()


def _is_full(pipe):
    import array
    import fcntl
    import termios

    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0] >= 60_000


def test_items_that_were_not_written_when_the_reader_goes_away_are_in_the_queue(run, make):
    queue = make()
    with stuck(run, queue) as getting:
        read = os.read(getting.stdout.fileno(), 3000)
        getting.stdout.close()
        assert getting.wait(LIMIT) == statuses.READER_GONE
        assert getting.stderr.read() == b""
    assert read.decode().startswith("\n".join(numbered(2)))
    left = [queue.get_nowait() for _ in range(queue.qsize())]
    # The pipe held whole items that no process read; the one that it held in part went back.
    assert left == numbered(500)[500 - len(left) :]
    assert 400 < len(left) < 500
    assert queue.stats().in_flight == 0


def test_ctrl_c_leaves_items_that_were_not_written_in_the_queue(run, make):
    queue = make()
    with stuck(run, queue) as getting:
        getting.send_signal(signal.SIGINT)
        until(lambda: queue.stats().in_flight == 0)
        written = getting.stdout.read().decode().splitlines()
        assert getting.wait(LIMIT) == statuses.INTERRUPTED
        getting.stdout.close()
    left = [queue.get_nowait() for _ in range(queue.qsize())]
    whole = [line for line in written if len(line) == len(numbered(500)[500 - len(left) - 1])]
    assert [*whole[: 500 - len(left)], *left] == numbered(500)


def test_items_that_a_killed_get_did_not_write_come_back(run, make):
    queue = make()
    with stuck(run, queue) as getting:
        getting.kill()
        written = getting.stdout.read().decode().splitlines()
        getting.stdout.close()
        getting.wait()
    waiting = {*numbered(500)} - {*written[:-1]}
    while waiting:
        waiting.discard(queue.get(timeout=LIMIT))


def test_ctrl_c_in_a_wait_leaves_no_role_held(run, make):
    queue = make()
    getting = run("get", "jobs")
    until(lambda: queue.why_blocked().get.holder)
    getting.send_signal(signal.SIGINT)
    status, output, errors = outcome(getting)
    assert (status, output) == (statuses.INTERRUPTED, b"")
    assert errors == "Interrupted.\n"
    assert queue.why_blocked().get.holder is None


def test_ctrl_c_while_the_queue_is_full_leaves_no_role_held(run, make):
    queue = make(maxsize=2)
    putting = run("put", "jobs", stdin=subprocess.PIPE)
    putting.stdin.write(b"1\n2\n3\n")
    putting.stdin.flush()
    until(lambda: queue.why_blocked().put.holder)
    putting.send_signal(signal.SIGINT)
    assert outcome(putting) == (statuses.INTERRUPTED, b"", "Interrupted.\n")
    assert queue.why_blocked().put.holder is None
    assert queue.get_many(9) == ["1", "2"]


def test_a_get_waits_for_the_queue_that_another_command_creates(run, make):
    getting = run("get", "jobs")
    assert getting.stderr.readline() == b"There is no queue 'jobs' yet: waiting for it.\n"
    with make() as queue:
        queue.put("item")
        queue.shutdown()
        assert outcome(getting) == (0, b"item\n", "")
        queue.delete()
    status, _, errors = outcome(run("get", "jobs", "--timeout", 0))
    assert (status, "does not exist" in errors) == (statuses.MISSING, True)


def test_items_end_as_is_asked_for_on_every_engine(run, broker, name):
    environ = {**environment(name), "PRESSURE_URL": broker.url}
    run = partial(run, env=environ)
    queue = Queue(0, "jobs", url=broker.url, prefix=name, serializer="raw")
    assert outcome(run("put", "jobs", "-0", stdin=subprocess.PIPE), b"a\nb\0c\0d")[0] == 0
    assert outcome(run("put", "jobs", "--raw-chunks", 2, stdin=subprocess.PIPE), b"\n\0e")[0] == 0
    assert queue.peek(9) == [b"a\nb", b"c", b"d", b"\n\0", b"e"]
    assert outcome(run("get", "jobs", "-n", 2, "-0")) == (0, b"a\nb\0c\0", "")
    status, output, _ = outcome(run("get", "jobs", "--raw", "--timeout", 0))
    assert (status, output) == (statuses.TIME_IS_UP, b"d\n\0e")


def test_a_line_that_is_no_json_ends_a_put_which_says_how_many_went_in(run, make):
    queue = make(serializer="json")
    status, _, errors = outcome(
        run("put", "jobs", "--json", stdin=subprocess.PIPE), b'{"a": 1}\nnonsense\n'
    )
    assert status == 1
    assert errors.startswith("Error: line 2 is not JSON: ")
    assert errors.endswith("before it, 1 item went in\n")
    assert queue.get_nowait() == {"a": 1}
    queue.shutdown()
    status, _, errors = outcome(run("put", "jobs", stdin=subprocess.PIPE), b"1\n")
    assert errors == "Error: queue 'jobs' is shut down; 0 items of the input were put\n"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (("put", "jobs", "-0", "--raw-chunks", 3), "-0 and --raw-chunks exclude each other"),
        (("get", "jobs", "-0", "--raw"), "-0 and --raw exclude each other"),
        (("get", ""), "a queue's name is not empty"),
        (("put", ""), "a queue's name is not empty"),
    ],
)
def test_options_that_exclude_each_other_and_an_empty_name_are_wrong_usage(run, wrong, why):
    status, _, errors = outcome(run(*wrong, stdin=subprocess.DEVNULL))
    assert status == statuses.USAGE
    assert why in errors


def test_values_in_pickles_are_written_and_objects_stay_in_the_queue(run, make):
    queue = make(serializer="pickle")
    queue.put_many([{"a": [1, None]}, "text", 2.5, {1: object}])
    status, output, errors = outcome(run("get", "jobs"))
    assert (status, output) == (1, b'{"a": [1, null]}\ntext\n2.5\n')
    assert errors == (
        "Error: the next item stays in the queue: it is a pickle of an object, which is not "
        "unpickled here. `pressure-mp peek` shows it\n"
    )
    assert queue.get() == {1: object}
    queue.put(bytes(1 << 18))
    assert "kept apart" in outcome(run("get", "jobs"))[2]
    assert queue.qsize() == 1


def test_signed_items_are_written_with_the_key_and_stay_without(run, make, valkey, name):
    queue = make(authkey="a key of a test")
    queue.put("signed")
    status, output, errors = outcome(run("get", "jobs", "-n", 1))
    assert (status, output) == (1, b"")
    assert "it is signed with no key in PRESSURE_AUTHKEY" in errors
    assert (queue.qsize(), queue.rejected()) == (1, [])
    environ = {**environment(name), "PRESSURE_URL": valkey.url}
    environ["PRESSURE_AUTHKEY"] = "a key of a test"
    assert outcome(run("get", "jobs", "-n", 1, env=environ)) == (0, b"signed\n", "")


def test_a_queue_of_another_order_is_written_in_its_order_and_put_to_if_a_line_says_where(
    run, make
):
    last_first = make(LifoQueue)
    last_first.open()
    assert outcome(run("put", "jobs", "--shutdown", stdin=subprocess.PIPE), b"1\n2\n")[0] == 0
    assert outcome(run("get", "jobs")) == (0, b"2\n1\n", "")
    last_first.delete()
    make(PriorityQueue).open()
    assert (
        "a line alone does not tell its priority or key"
        in outcome(run("put", "jobs", stdin=subprocess.PIPE), b"1\n")[2]
    )


def test_a_get_that_waits_ends_when_its_reader_has_ended(run, make):
    queue = make()
    queue.put("first")
    getting = run("get", "jobs")
    assert getting.stdout.readline() == b"first\n"
    until(lambda: queue.why_blocked().get.holder)
    getting.stdout.close()
    assert getting.wait(LIMIT) == statuses.READER_GONE
    assert getting.stderr.read() == b""
    getting.stderr.close()
    assert queue.why_blocked().get.holder is None
    assert queue.stats().in_flight == 0


def test_a_get_that_waits_for_its_queue_ends_when_its_reader_has_ended(run):
    getting = run("get", "jobs")
    assert getting.stderr.readline() == b"There is no queue 'jobs' yet: waiting for it.\n"
    getting.stdout.close()
    assert getting.wait(LIMIT) == statuses.READER_GONE
    getting.stderr.close()


def test_a_get_whose_time_is_up_says_for_how_long_it_waited(run, make):
    make().open()
    status, _, errors = outcome(run("get", "jobs", "--timeout", "0.3"))
    found = re.search(r"is empty, still after ([\d.]+) s: ", errors)
    assert status == statuses.TIME_IS_UP
    assert found is not None, errors
    assert float(found[1]) >= 0.29


def test_lines_with_a_unique_key_are_one_task_until_it_is_done(run, valkey, name):
    tasks = TaskQueue.create("tasks", url=valkey.url, prefix=name, serializer="text")

    def put(*lines):
        putting = run("put", "tasks", "--unique", "nightly", stdin=subprocess.PIPE)
        assert outcome(putting, "".join(f"{line}\n" for line in lines).encode())[0] == 0

    put("first", "second")
    put("third")
    task = tasks.take(0)
    assert (task.data, tasks.qsize()) == ("first", 0)
    task.ack()
    put("fourth")
    assert tasks.take(0).data == "fourth"


def test_only_a_queue_of_tasks_has_unique_keys(run, make):
    make().put("line")
    putting = run("put", "jobs", "--unique", "nightly", stdin=subprocess.PIPE)
    status, _, errors = outcome(putting, b"line\n")
    assert (status, "is no queue of tasks" in errors) == (1, True)
    putting = run("put", "nothing", "--unique", "nightly", stdin=subprocess.PIPE)
    assert outcome(putting, b"line\n")[0] == statuses.MISSING
