"""Keys of a queue of tasks that a server, or somebody, removed."""

from __future__ import annotations

import threading

import pytest
from click.testing import CliRunner
from waiting import Background

from pressure_mp import Empty, IncompleteQueueError, TaskQueue
from pressure_mp.cli import statuses
from pressure_mp.cli.app import app

pytestmark = pytest.mark.usefixtures("no_looks")


@pytest.fixture
def tasks(server, name):
    tasks = TaskQueue(name, url=server.url)
    yield tasks
    tasks.delete()


@pytest.fixture
def remove(server, name):
    """Removes a key, as a server with maxmemory-policy allkeys-lru does."""

    def remove(part):
        with server.client() as client:
            assert client.delete(f"__pressure__:mp:{{{name}}}:{part}")

    return remove


@pytest.fixture
def call(server):
    def call(*arguments, status=0):
        result = CliRunner(env={"PRESSURE_URL": server.url}).invoke(app, arguments)
        assert result.exit_code == status, (result.output, result.exception)
        return result.output

    return call


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("key", [None, "key"])
def test_tasks_without_data_are_buried_and_the_others_are_done(tasks, remove, number, key):
    lost = tasks.put_many(["lost"] * number, key=key)
    remove("payloads")
    tasks.put("later", priority=1)
    taken = []
    while True:
        try:
            taken.append(tasks.take(0).data)
        except IncompleteQueueError:
            continue
        except Empty:
            break
    assert taken == ["later"]
    assert tasks.stats().counts["B"] == number
    with pytest.raises(IncompleteQueueError, match="has lost the data of task"):
        tasks.peek(lost[0])


def test_the_command_shows_tasks_without_data_and_drops_them(tasks, remove, call, name, tmp_path):
    tasks.put_many(["lost"] * 2, ttl=1000)
    remove("payloads")
    assert call("tasks", name).count("<lost: the server or somebody removed it>") == 2
    assert '"kind":"lost"' in call("tasks", name, "--json")
    assert "are missing" in call("export", name, str(tmp_path / "file"), status=statuses.FAILED)
    for _ in range(2):
        with pytest.raises(IncompleteQueueError):
            tasks.take(0)
    assert call("drop", name, "--all", "--yes") == "2 removed.\n"


@pytest.mark.parametrize(
    ("part", "problem"),
    [("payloads", "The data of tasks are missing"), ("ready", "are counted that are not there")],
)
def test_doctor_names_a_queue_of_tasks_that_lost_keys(tasks, remove, call, name, part, problem):
    tasks.put_many(range(3))
    tasks.take(0)
    assert f"queue '{name}'" not in call("doctor", status=statuses.FOUND)
    remove(part)
    found = call("doctor", status=statuses.FOUND)
    assert f"LOSES DATA: queue '{name}': " in found
    assert problem in found


def test_doctor_finds_nothing_lost_in_a_queue_at_which_workers_are_at_work(tasks, call, name):
    is_over = threading.Event()

    def work():
        while not is_over.is_set():
            tasks.put_many([1, 2])
            for _ in range(2):
                tasks.take(0).ack()

    working = Background(work)
    found = [call("doctor", status=statuses.FOUND) for _ in range(20)]
    is_over.set()
    working.result()
    assert not any(f"LOSES DATA: queue '{name}'" in text for text in found)
