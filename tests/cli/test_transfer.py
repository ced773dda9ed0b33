"""copy, move, export and import, between queues and between kinds of brokers."""

from __future__ import annotations

import json

import engines
import pytest
from click.testing import CliRunner
from engines import Can

from pressure_mp import FairQueue, LifoQueue, PriorityQueue, Queue, TaskQueue
from pressure_mp.cli.app import app

ITEMS = ["one", {"two": 2}, bytes(1 << 19), "four"]
KEY = "a key of a test"


def call(*arguments, status=0, **environ):
    result = CliRunner(env=environ).invoke(app, [*map(str, arguments)])
    assert result.exit_code == status, (result.output, result.exception)
    return result.output


@pytest.fixture
def places(running, name):
    """Two brokers of different engines."""
    if len(kinds := engines.one_of_each(Can.SERVER)) < 2:
        pytest.skip("servers of two engines are needed")
    return [{"url": running[kind.name].url, "prefix": name} for kind in kinds[:2]]


def options(place, to=""):
    return f"--{to}url", place["url"], f"--{to}prefix", place["prefix"]


def all_of(queue):
    return queue.get_many(1) + [queue.get_nowait() for _ in range(queue.qsize())]


@pytest.mark.parametrize("environ", [{}, {"PRESSURE_AUTHKEY": KEY}])
def test_items_are_copied_and_moved_to_another_broker_with_their_content(places, environ):
    here, there = places
    key = environ.get("PRESSURE_AUTHKEY")
    queue = Queue(9, "source", authkey=key, **here)
    queue.put_many(ITEMS)
    to = (*options(here), *options(there, "to-"))
    assert call("copy", "source", "copied", *to, **environ) == "4 copied.\n"
    assert call("move", "source", "moved", *to, "-n", 1, **environ) == "1 moved.\n"
    assert queue.qsize() == 3
    assert call("move", "source", "moved", *to, **environ) == "3 moved.\n"
    assert queue.empty()
    for name in ("copied", "moved"):
        copied = Queue.attach(name, authkey=key, **there)
        assert copied.maxsize == 9
        assert all_of(copied) == ITEMS
    stats = queue.stats()
    assert (stats.in_flight, stats.rejected) == (0, 0)


def test_signed_items_stay_where_they_are_without_the_key(places):
    here, _ = places
    queue = Queue(0, "source", authkey=KEY, **here)
    queue.put("signed")
    for command in ("copy", "move"):
        output = call(command, "source", "target", *options(here), status=1)
        assert "set PRESSURE_AUTHKEY" in output
    assert queue.get_nowait() == "signed"


def test_an_exported_file_is_imported_whole_or_from_a_place_on(places, tmp_path):
    here, there = places
    file = tmp_path / "items.jsonl"
    Queue(0, "source", authkey=KEY, **here).put_many(ITEMS)
    assert call("export", "source", file, *options(here)) == "4 exported.\n"
    assert json.loads(file.read_text().splitlines()[-1])["items"] == 4
    # The same name and prefix: no key is needed.
    assert call("import", file, *options(there)) == "4 imported.\n"
    assert all_of(Queue.attach("source", authkey=KEY, **there)) == ITEMS
    args = ("import", file, "other", "--skip", 3, *options(here))
    assert call(*args, PRESSURE_AUTHKEY=KEY) == "1 imported.\n"
    assert all_of(Queue.attach("other", authkey=KEY, **here)) == ITEMS[3:]
    file.write_bytes(file.read_bytes().replace(b"=", b"A", 1))
    assert "not complete" in call("import", file, "third", *options(here), status=1)
    assert "does not exist" in call("info", "third", *options(here), status=4)


def test_the_order_of_a_lifo_queue_is_told(places):
    here, _ = places
    LifoQueue(0, "last", **here).put_many([1, 2, 3])
    assert call("copy", "last", "copied", *options(here)) == "3 copied.\n"
    assert all_of(LifoQueue.attach("copied", **here)) == [3, 2, 1]
    assert call("move", "last", "moved", *options(here)) == "3 moved.\n"
    assert all_of(LifoQueue.attach("moved", **here)) == [1, 2, 3]
    PriorityQueue.create("urgent", **here)
    complaint = "does not say where it belongs"
    assert complaint in call("copy", "last", "urgent", *options(here), status=1)


@pytest.mark.parametrize("command", ["copy", "move", "export"])
def test_items_keep_their_priorities_and_their_keys(places, tmp_path, command):
    file = tmp_path / "file"
    here, there = places if command != "move" else reversed(places)
    urgent = PriorityQueue(7, "urgent", key=len, authkey=KEY, **here)
    urgent.put_many(["ccc", "a" * (1 << 18), "", "bb"])
    fair = FairQueue(first, name="fair", authkey=KEY, **here)
    fair.put_many(["a1", "a2", "a3", "b1"])
    for name in ("urgent", "fair"):
        if command == "export":
            call("export", name, file, *options(here))
            call("import", file, name, *options(there), PRESSURE_AUTHKEY=KEY)
        else:
            to = (*options(here), *options(there, "to-"))
            assert call(command, name, name, *to, PRESSURE_AUTHKEY=KEY).startswith("4 ")
    assert urgent.empty() == fair.empty() == (command == "move")
    urgent = PriorityQueue.attach("urgent", key=len, authkey=KEY, **there)
    urgent.put("a")
    assert urgent.maxsize == 7
    assert all_of(urgent) == ["", "a", "bb", "ccc", "a" * (1 << 18)]
    fair = FairQueue.attach("fair", key=first, authkey=KEY, **there)
    assert fair.qsize(key="b") == 1
    assert all_of(fair) == ["a1", "b1", "a2", "a3"]


def first(text):
    return text[0]


@pytest.mark.parametrize("command", ["copy", "move", "export"])
def test_tasks_keep_their_ids_states_and_times(places, tmp_path, command):
    file = tmp_path / "file"
    here, there = places if command != "move" else reversed(places)
    tasks = TaskQueue("tasks", id="auto_increment", ttr=9, authkey=KEY, **here)
    tasks.put_many(["first", "second"])
    tasks.put("buried", id="b", tube="tube", priority=-1)
    tasks.take(tube="tube").bury(error="why")
    tasks.put("later", delay=1000)
    tasks.put("now", priority=-2)
    assert tasks.take().data == "now"
    if command == "export":
        call("export", "tasks", file, *options(here))
    for again in ("4 ", "4 " if command != "move" else "0 "):
        if command == "export":
            done = call("import", file, *options(there), PRESSURE_AUTHKEY=KEY)
        else:
            to = (*options(here), *options(there, "to-"))
            done = call(command, "tasks", "tasks", *to, PRESSURE_AUTHKEY=KEY)
        assert done.startswith(again), "tasks that are there already stay as they are"
    left = {state: number for state, number in tasks.stats().counts.items() if number}
    assert left == ({"T": 1} if command == "move" else {"R": 2, "W": 1, "B": 1, "T": 1})
    tasks = TaskQueue.attach("tasks", ttr=9, authkey=KEY, **there)
    assert [(task.id, task.data) for task in (tasks.take(0), tasks.take(0))] == [
        (1, "first"),
        (2, "second"),
    ]
    later, buried = tasks.peek(3), tasks.peek("b")
    assert (later.data, later.state, buried.data, buried.state) == ("later", "W", "buried", "B")
    assert 900 < later.due - later.created <= 1000
    assert (buried.tube, buried.priority) == ("tube", -1)
    assert tasks.put("next") == 4


@pytest.mark.parametrize("keep", ["theirs", "ours"])
def test_the_advice_where_a_task_has_other_data_leads_to_either(places, tmp_path, keep):
    here, _ = places
    file = tmp_path / "tasks.jsonl"
    TaskQueue("tasks", **here).put_many(["a", "b", "c"], ids=["1", "2", "3"])
    call("export", "tasks", file, *options(here))
    other = TaskQueue("other", **here)
    other.put("theirs", id="2")
    refusal = call("import", file, "other", *options(here), status=1)
    assert "to keep the task that is there, go on behind it with --skip 2" in refusal
    assert "`pressure-mp drop other 2` and then --resume" in refusal
    if keep == "ours":
        call("drop", "other", "2", "--yes", *options(here))
    go_on = ("--resume",) if keep == "ours" else ("--skip", 2)
    call("import", file, "other", *go_on, *options(here))
    found = {task.id: task.data for task in other.list("ready")}
    assert found == {"1": "a", "2": "b" if keep == "ours" else "theirs", "3": "c"}


def test_an_import_into_a_queue_that_is_shut_down_does_not_advise_to_try_again(places, tmp_path):
    here, _ = places
    file = tmp_path / "items.jsonl"
    Queue(0, "source", **here).put("item")
    call("export", "source", file, *options(here))
    Queue(0, "other", **here).shutdown()
    refusal = call("import", file, "other", *options(here), status=1)
    assert "shut down" in refusal
    assert "--resume" not in refusal


def test_another_task_of_that_id_is_left_alone(places):
    here, _ = places
    TaskQueue("tasks", **here).put("this", id=1)
    other = TaskQueue("other", **here)
    other.put("that", id=1)
    assert "its data are not the same" in call("move", "tasks", "other", *options(here), status=1)
    assert other.take(0).data == "that"


def test_a_file_that_cannot_be_written_is_named(places, tmp_path):
    here, _ = places
    Queue.create("source", **here)
    file = tmp_path / "nowhere" / "file"
    said = call("export", "source", file, *options(here), status=1)
    assert said == f"Error: {file}.part: No such file or directory\n"


@pytest.mark.parametrize("command", ["copy", "move", "export"])
def test_tasks_have_their_unique_keys_where_these_are_free(places, tmp_path, command):
    here, there = places
    file = tmp_path / "file"
    tasks, target = TaskQueue("tasks", **here), TaskQueue("tasks", **there)
    tasks.put("buried", id="a", unique="free")
    tasks.take(0).bury()
    tasks.put("first", id="b", unique="free")
    tasks.put("second", id="c", unique="held")
    held = target.put("another", unique="held", delay=1000)
    for _ in range(1 if command == "move" else 2):
        if command == "export":
            call("export", "tasks", file, *options(here))
            call("import", file, *options(there))
        else:
            call(command, "tasks", "tasks", *options(here), *options(there, "to-"))
    there_now = {task.id: (task.data, task.unique) for task in target.list("R")}
    assert there_now == {"b": ("first", "free"), "c": ("second", None)}
    assert target.peek("a").state == "B"
    assert target.put("third", unique="free") == "b"
    assert target.put("third", unique="held") == held
