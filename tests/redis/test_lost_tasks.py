"""Keys of a queue of tasks that a server, or another program, removed."""

from __future__ import annotations

import threading

import pytest
from waiting import Background

from pressure_mp import Empty, IncompleteQueueError, LifoQueue, TaskQueue
from pressure_mp.cli import statuses

pytestmark = pytest.mark.usefixtures("no_looks")


@pytest.fixture
def tasks(server, name):
    tasks = TaskQueue(name, url=server.url)
    tasks.open()
    yield tasks
    tasks.delete()


@pytest.fixture
def remove(remove_key, name):
    """Removes a key of the queue."""
    return lambda part: remove_key(f"mp:{{{name}}}:{part}")


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
    assert call("tasks", name).count("<lost: the server or another program removed it>") == 2
    assert '"kind":"lost"' in call("tasks", name, "--json")
    assert "are missing" in call("export", name, str(tmp_path / "file"), status=statuses.FAILED)
    for _ in range(2):
        with pytest.raises(IncompleteQueueError):
            tasks.take(0)
    assert call("drop", name, "--all", "--yes") == "2 removed.\n"


def fill(tasks):
    """Tasks of all kinds that use the keys of a queue."""
    tasks.put_many(range(10))
    tasks.take_many(4)
    tasks.put("held")
    tasks.put_many(["k"] * 4, key="k")
    tasks.put_many(["t"] * 2, tube="tube", ttl=1000)
    tasks.put("later", delay=1000)
    tasks.take(0, tube="tube")
    tasks.put("buried", id="b", priority=-1)
    tasks.take(0).bury(error="once")


def named(found, name):
    return [line for line in found.splitlines() if f": queue '{name}': " in line]


def ready(tasks):
    """The data of the tasks that can be taken."""
    taken = []
    while True:
        try:
            taken.append(tasks.take(0))
        except Empty:
            return sorted(str(task.data) for task in taken)


#: Where tasks are looked for, and how many there are: all of that is known from their records.
KNOWN = (
    *("bound", "counts", "ready", "behind", "groups", "tubes", "due", "expiry", "taken"),
    *("bundles", "shelf"),
)


@pytest.mark.parametrize("part", KNOWN)
def test_doctor_mends_keys_whose_content_is_known_from_the_tasks(tasks, remove, call, name, part):
    fill(tasks)
    counts = tasks.stats().counts
    assert named(call("doctor", status=statuses.FOUND), name) == [
        f"note: queue '{name}': 1 task is buried."
    ]
    remove(part)
    (found,) = named(call("doctor", "--fix", status=statuses.FOUND), name)
    assert found.startswith(f"LOSES DATA: queue '{name}': Keys of this queue of tasks are missing")
    assert tasks.stats().counts == counts
    assert named(call("doctor", status=statuses.FOUND), name) == [
        f"note: queue '{name}': 1 task is buried."
    ]
    assert [task.error for task in tasks.list("buried")] == ["once"]
    assert tasks.peek(tasks.list("waiting")[0].id).data == "later"
    before = sorted(str(task.data) for task in tasks.list("ready", limit=100))
    assert ready(tasks) == before
    assert tasks.stats().counts["R"] == 0


@pytest.mark.parametrize("part", ["groups", "bundles"])
def test_a_worker_is_told_of_the_key_that_is_missing(tasks, remove, call, part):
    """And not a word of Lua."""
    tasks.put_many(["k"] * 3, key="k")
    tasks.put_many([1, 2], priority=-1)
    one, _ = tasks.take_many(2)
    remove(part)
    with pytest.raises(IncompleteQueueError, match=rf"lost its key `{part}`.*doctor --fix"):
        tasks.take(0) if part == "groups" else one.bury()
    call("doctor", "--fix", status=statuses.FOUND)
    one.bury()
    assert [tasks.take(0).data for _ in range(3)] == ["k"] * 3


def test_as_many_of_a_key_are_taken_as_before_when_its_groups_were_lost(server, name, remove, call):
    tasks = TaskQueue(name, url=server.url, per_key=2)
    tasks.put_many(["k"] * 4, key="k")
    first, _ = tasks.take(0), tasks.take(0)
    remove("groups")
    call("doctor", "--fix", status=statuses.FOUND)
    with pytest.raises(Empty):
        tasks.take(0)
    first.ack()
    assert tasks.take(0).data == "k"
    with pytest.raises(Empty):
        tasks.take(0)


@pytest.mark.parametrize("bound_too", [False, True])
def test_a_queue_of_tasks_that_lost_its_settings_has_its_tasks_when_it_is_opened(
    server, tasks, remove, call, name, bound_too
):
    tasks.put_many(["a", "b"])
    tasks.put("c", id=3)
    remove("meta")
    if bound_too:
        remove("bound")
    (found,) = named(call("doctor", status=statuses.FOUND), name)
    assert "Its settings are missing, and the note that it is a queue of tasks" in found
    if not bound_too:
        assert "has lost the key that says its discipline" in call("info", name, status=1)
    assert call("ls", f"*{name}*") == ""
    again = TaskQueue(name, url=server.url, id="auto_increment")
    again.open()
    assert named(call("doctor", status=statuses.FOUND), name) == []
    assert again.put("d") == 4, "no id is given twice"
    assert ready(again) == ["a", "b", "c", "d"]


def test_tasks_whose_records_were_lost_are_ready_again(tasks, remove, call, name):
    """No key says any more which worker had them, or with which priority."""
    fill(tasks)
    remove("records")
    found = named(call("doctor", "--fix", status=statuses.FOUND), name)
    assert found[0].startswith(f"LOSES DATA: queue '{name}': ")
    held = [str(number) for number in range(10)]
    assert ready(tasks) == sorted([*held, "held", *["k"] * 4, "t", "t", "later", "buried"])


def test_doctor_names_a_queue_of_tasks_that_lost_their_data(tasks, remove, call, name):
    tasks.put_many(range(3), ttl=1000)
    tasks.take(0)
    assert f"queue '{name}'" not in call("doctor", status=statuses.FOUND)
    remove("payloads")
    found = call("doctor", status=statuses.FOUND)
    assert f"LOSES DATA: queue '{name}': The data of tasks are missing" in found


def test_doctor_names_a_queue_of_another_order_that_lost_its_bound(server, remove, call, name):
    queue = LifoQueue(5, name, url=server.url)
    queue.put_many([1, 2])
    remove("bound")
    (found,) = named(call("doctor", status=statuses.FOUND), name)
    assert "Its bound is missing" in found
    again = LifoQueue(5, name, url=server.url)
    assert [again.get(), again.get()] == [2, 1]
    assert named(call("doctor", status=statuses.FOUND), name) == []
    again.delete()


def test_doctor_finds_nothing_lost_in_a_queue_at_which_workers_are_at_work(server, call, name):
    tasks = TaskQueue(name, url=server.url, prefix=name)  # the only queue that doctor looks at
    tasks.open()
    is_over = threading.Event()

    def work():
        while not is_over.is_set():
            tasks.put_many([1, 2])
            for _ in range(2):
                tasks.take(0).ack()

    working = Background(work)
    found = [call("doctor", "--prefix", name, status=statuses.FOUND) for _ in range(20)]
    is_over.set()
    working.result()
    tasks.delete()
    assert not any(f"LOSES DATA: queue '{name}'" in text for text in found)


@pytest.mark.parametrize("delay", [0, 100])
@pytest.mark.parametrize("per_key", [None, 1])
def test_why_names_a_missing_count_and_doctor(server, name, remove, call, delay, per_key):
    tasks = TaskQueue(name, url=server.url, per_key=per_key)
    tasks.open()
    assert "put one" in call("why", name)
    tasks.put("a", delay=delay)
    assert "A key of the queue is missing" not in call("why", name)
    remove("counts")
    assert "A key of the queue is missing" in call("why", name)
    assert "`pressure-mp doctor` says what to do" in call("why", name)
    call("doctor", "--fix", status=statuses.FOUND)
    assert "A key of the queue is missing" not in call("why", name)
    tasks.delete()


def test_schedules_are_listed_without_those_that_the_server_lost(tasks, remove_key, name):
    tasks.every(3600, "data", name="lost")
    assert [one.name for one in tasks.schedules()] == ["lost"]
    remove_key(f"mp:{{{name}:periodic}}:due")
    assert tasks.schedules() == []
    tasks.every(3600, "data", name="later")
    assert [one.name for one in tasks.schedules()] == ["later"]
