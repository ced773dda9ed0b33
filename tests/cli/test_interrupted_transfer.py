"""copy, move, export and import, killed in the midst of it, and called again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter

import pytest
from cli.runs import MAIN, environment, python
from click.testing import CliRunner
from waiting import LIMIT, until

from pressure_mp import PriorityQueue, Queue, TaskQueue
from pressure_mp.cli import statuses
from pressure_mp.cli.app import app

KEY = "a key of a test"


@pytest.fixture
def url(broker):
    return broker.url


@pytest.fixture
def run(url, name):
    """Starts the command; what it writes is kept."""

    def start(*arguments, **more):
        environ = {**environment(name), "PRESSURE_URL": url, "PRESSURE_AUTHKEY": KEY}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(python(MAIN, *arguments), env=environ, **pipes, **more)

    return start


@pytest.fixture
def call(url, name):
    """Runs the command to its end in this process; what it wrote."""

    def call(*arguments, status=0):
        environ = {"PRESSURE_URL": url, "PRESSURE_PREFIX": name, "PRESSURE_AUTHKEY": KEY}
        result = CliRunner(env=environ).invoke(app, [*map(str, arguments)])
        assert result.exit_code == status, (result.output, result.exception)
        return result.output

    return call


@pytest.fixture
def make(url, name):
    def make(kind=Queue, name_of_queue="jobs", maxsize=0, **options):
        return kind(maxsize, name_of_queue, url=url, prefix=name, authkey=KEY, **options)

    return make


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


def kill_when(process, condition):
    """SIGKILL as soon as that is so; whether it was still at work then."""
    until(lambda: condition() or process.poll() is not None)
    was_running = process.poll() is None
    kill(process)
    return was_running


def numbered(number, every=0):
    """Items of which a few are large."""
    return [
        (place, "x" * 300_000 if every and place % every == every - 1 else "")
        for place in range(number)
    ]


def first(item):
    return item[0]


def all_of(queue):
    found = []
    while not queue.empty():
        found += queue.get_many(1000)
    return found


@pytest.mark.parametrize(("kind", "key"), [(Queue, {}), (PriorityQueue, {"key": first})])
def test_an_import_that_is_killed_again_and_again_puts_each_item_once(
    run, call, make, tmp_path, kind, key
):
    items, file = numbered(4000, 300), tmp_path / "file"
    make(kind, "source", **key).put_many(items)
    call("export", "source", file)
    queue = make(kind, **key)
    import_killed_at((0, 700, 1300, 2150, 3100), queue.qsize, run, call, file)
    assert all_of(queue) == items
    assert os.listdir(tmp_path) == ["file"]
    assert "nothing to resume" in call("import", file, "jobs", "--resume", status=statuses.FAILED)


def import_killed_at(parts, count, run, call, file):
    """An import that is killed some time after each of these numbers of items, and goes on."""
    resume = ()
    for part in parts:
        at = part + random.randrange(500)
        kill_when(run("import", file, "jobs", *resume), lambda at=at: count() > at)
        if not [*file.parent.glob("*.json")]:
            break  # it was done before it was killed
        resume = ("--resume",)
    else:
        call("import", file, "jobs", *resume)
    assert resume, "none was killed"


def interrupted(run, call, make, file, maxsize=250, number=1000):
    """An import into a queue in which there is not space for all, killed when that is full."""
    make(name_of_queue="source").put_many(range(number))
    call("export", "source", file)
    queue = make(maxsize=maxsize)
    process = run("import", file, "jobs")
    assert kill_when(process, queue.full)
    return queue


def test_an_import_that_was_killed_while_it_waited_goes_on_behind_what_was_put(
    run, call, make, tmp_path
):
    file = tmp_path / "file"
    queue = interrupted(run, call, make, file)
    found = queue.get_many(100)
    process = run("import", file, "jobs", "--resume")
    while len(found) < 1000:
        found += queue.get_many(100, timeout=LIMIT)
    process.communicate(timeout=LIMIT)
    assert (process.returncode, found, queue.empty()) == (0, [*range(1000)], True)


def test_an_import_goes_on_at_its_broker_by_another_url(run, call, make, tmp_path, url):
    file = tmp_path / "file"
    queue = interrupted(run, call, make, file)
    queue.maxsize = 5000
    spelled = "--url", url.replace("127.0.0.1", "localhost")
    assert "was interrupted" in call("import", file, "jobs", *spelled, status=statuses.FAILED)
    assert call("import", file, "jobs", "--resume", *spelled) == "750 imported.\n"
    assert all_of(queue) == [*range(1000)]


def test_an_import_begins_again_only_where_it_is_told_to(run, call, make, tmp_path):
    file = tmp_path / "file"
    queue = interrupted(run, call, make, file)
    queue.maxsize = 5000
    refusal = call("import", file, "jobs", status=statuses.FAILED)
    assert "items 1 to 200 are in the queue, items 201 to 300 may be there or not" in refusal
    assert "--resume" in refusal
    assert "--skip N" in refusal
    refusal = call("import", file, "--resume", "--skip", 1, status=2)
    assert "use only one of --resume and --skip" in refusal
    assert queue.qsize() == 250
    assert call("import", file, "other") == "1000 imported.\n", "another queue has its own note"
    assert call("import", file, "jobs", "--skip", 998) == "2 imported.\n"
    assert all_of(queue) == [*range(250), 998, 999]
    assert call("import", file, "jobs") == "1000 imported.\n", "the last import was not interrupted"


def test_an_import_beside_which_others_put_does_not_guess_where_it_ended(run, call, make, tmp_path):
    file = tmp_path / "file"
    queue = interrupted(run, call, make, file)
    queue.maxsize = 5000
    queue.put("of somebody else")
    refusal = call("import", file, "jobs", "--resume", status=statuses.FAILED)
    assert "another producer put into 'jobs' meanwhile" in refusal
    assert "--skip 200" in refusal
    assert "--skip 300" in refusal
    assert queue.qsize() == 251
    queue.delete()
    make()
    assert "lost its count" in call("import", file, "jobs", "--resume", status=statuses.FAILED)
    file.write_bytes(file.read_bytes()[:-1])  # another file, although it is whole
    make(name_of_queue="source").get()
    call("export", "source", file)
    assert "of another" in call("import", file, "jobs", "--resume", status=statuses.FAILED)


def test_an_import_of_tasks_that_was_killed_puts_each_once(run, call, make, tmp_path):
    file = tmp_path / "file"
    with TaskQueue("source", **places(make)) as tasks:
        tasks.put_many(range(2000))
    call("export", "source", file)
    tasks = TaskQueue("jobs", **places(make))
    import_killed_at((0, 500, 1200), lambda: tasks.stats().counts["R"], run, call, file)
    assert [task.data for task in tasks.list("ready", limit=5000)] == [*range(2000)]
    assert tasks.stats().counts["R"] == 2000


def places(make):
    queue = make(name_of_queue="place")
    return {"url": queue.url, "prefix": queue.prefix, "authkey": KEY}


def test_an_export_that_is_killed_leaves_no_file_that_looks_whole(run, call, make, tmp_path):
    file, partial = tmp_path / "file", tmp_path / "file.part"
    make().put_many(numbered(3000, 50))
    process = run("export", "jobs", file)
    assert kill_when(process, lambda: partial.exists() and partial.stat().st_size)
    assert not file.exists()
    assert "not complete" in call("import", partial, "other", status=statuses.FAILED)
    assert call("export", "jobs", file) == "3000 exported.\n"
    assert call("import", file, "other") == "3000 imported.\n"
    assert all_of(make(name_of_queue="other")) == numbered(3000, 50)


def test_a_move_that_is_killed_again_and_again_loses_nothing(run, call, make):
    items = numbered(6000)
    source, target = make(), make(name_of_queue="target", maxsize=1)
    source.put_many(items)
    for part in (0, 1500, 3000, 4500):
        target.maxsize = part + random.randrange(1, 1000)
        assert kill_when(run("move", "jobs", "target"), target.full)
    target.maxsize = 50_000
    call("move", "jobs", "target")
    moved = Counter(all_of(target))
    assert sorted(moved) == items
    assert sum(moved.values()) <= len(items) + 4 * 1000
    assert (source.qsize(), source.stats().in_flight) == (0, 0)


def test_a_copy_that_is_killed_leaves_the_first_part_and_all_of_the_source(run, make):
    items = numbered(2000)
    source, target = make(), make(name_of_queue="target", maxsize=1050)
    source.put_many(items)
    assert kill_when(run("copy", "jobs", "target"), target.full)
    assert (source.qsize(), all_of(target)) == (2000, items[:1050])
