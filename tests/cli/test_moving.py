"""copy, move, export and import, between queues and between kinds of brokers."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from pressure_mp import LifoQueue, PriorityQueue, Queue
from pressure_mp.cli.app import app

ITEMS = ["one", {"two": 2}, bytes(1 << 19), "four"]
KEY = "a key of a test"


def call(*arguments, status=0, **environ):
    result = CliRunner(env=environ).invoke(app, [*map(str, arguments)])
    assert result.exit_code == status, (result.output, result.exception)
    return result.output


@pytest.fixture
def places(valkey, postgres, name):
    return [{"url": broker.url, "prefix": name} for broker in (valkey, postgres)]


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
    assert "not whole" in call("import", file, "third", *options(here), status=1)
    assert "does not exist" in call("info", "third", *options(here), status=4)


def test_the_order_of_a_lifo_queue_is_told_and_one_with_keys_is_refused(places):
    here, _ = places
    LifoQueue(0, "last", **here).put_many([1, 2, 3])
    assert call("copy", "last", "copied", *options(here)) == "3 copied.\n"
    assert all_of(LifoQueue.attach("copied", **here)) == [3, 2, 1]
    assert call("move", "last", "moved", *options(here)) == "3 moved.\n"
    assert all_of(LifoQueue.attach("moved", **here)) == [1, 2, 3]
    PriorityQueue(0, "urgent", **here).put(1)
    assert "do not say where they belong" in call("copy", "urgent", "x", *options(here), status=1)
