"""doctor and gc find what processes left that ended, and what at a server loses data."""

from __future__ import annotations

import json
import socket

import inside
import psutil
import pytest
from brokers.servers import Server
from click.testing import CliRunner
from opened import opened
from programs import killed as programs
from started import quickly, run_and_die
from stepwise import StepwiseClient
from waiting import LIMIT, until

from pressure_mp import BrokerFull, JoinableQueue, Queue, TaskQueue
from pressure_mp.cli import statuses
from pressure_mp.cli.app import app
from pressure_mp.engines.redis import keys

HERE = socket.gethostname()


@pytest.fixture
def call(valkey, name):
    def run(*arguments, status=0):
        options = ["--url", valkey.url, "--prefix", name]
        result = CliRunner().invoke(app, [*map(str, arguments), *options])
        assert result.exit_code == status, (result.output, result.exception)
        return [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]

    return run


@pytest.fixture
def stopped():
    """Starts a process that takes something, and is stopped then."""
    started = []

    def start(take, queue):
        process = quickly.Process(target=programs.take_and_stop, args=(take, queue))
        process.start()
        started.append(process)
        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        return process

    yield start
    for process in started:
        process.kill()
        process.join()


def test_items_and_tasks_of_ended_processes_are_found_and_given_back(call, valkey, name):
    options = {"url": valkey.url, "prefix": name}
    items, tasks = JoinableQueue(0, "items", **options), TaskQueue("tasks", **options)
    items.put("item")
    tasks.put("task")
    run_and_die(programs.take_and_die, "get", items)
    run_and_die(programs.take_and_die, "take", tasks)
    # The server of the tests has no append-only file: it loses data.
    found = call("doctor", "--json", status=statuses.FOUND)
    assert {one["subject"] for one in found if one["fixable"]} == {"queue 'items'", "queue 'tasks'"}
    assert any(one["loses_data"] and one["subject"].startswith("appendonly") for one in found)
    fixed = call("doctor", "--json", "--fix", status=statuses.FOUND)
    assert [one["fixed"] for one in fixed if one["fixable"]] == [True, True]
    assert (items.get_nowait(), tasks.take(0).data) == ("item", "task")
    items.task_done()
    found = call("doctor", "--json", status=statuses.FOUND)
    assert not any(one["fixable"] for one in found)


def test_a_task_whose_ttr_was_over_is_found_by_doctor_and_why(call, valkey, name):
    tasks = TaskQueue("tasks", url=valkey.url, prefix=name)
    tasks.put("task", id="one")
    tasks.take(0, ttr=0.001)
    until(lambda: tasks.peek("one").error)
    (found,) = [one for one in call("doctor", "--json", status=statuses.FOUND) if "ttr" in str(one)]
    assert found["subject"] == "queue 'tasks'"
    assert found["problem"] == "The ttr of task 'one' was over before the worker was done."
    assert found["advice"].startswith("Give such tasks a longer ttr")
    (why,) = call("why", "tasks", "--json")
    assert why["late"] == [{"id": "one", "process": None}]


def test_items_and_tasks_of_another_machine_are_found_when_their_leases_have_ended(
    call, valkey, name
):
    options = {"url": valkey.url, "prefix": name, "lease": 1}
    items, tasks = JoinableQueue(0, "items", **options), TaskQueue("tasks", **options)
    items.put("item")
    tasks.put("task")
    run_and_die(programs.take_elsewhere_and_die, "get", items)
    run_and_die(programs.take_elsewhere_and_die, "take", tasks)
    both = {"queue 'items'", "queue 'tasks'"}
    until(lambda: fixable(call("doctor", "--json", status=statuses.FOUND)) == both)
    assert items.why_blocked().sentence.endswith(
        "let its lease end; it goes back when a consumer waits for an item: start one, or "
        "`pressure-mp doctor --fix`."
    )
    assert tasks.why_blocked().sentence == (
        "No task is ready: 1 task is taken by processes that have ended or let their leases end, "
        "and ready again as soon as a worker waits: start a worker."
    )
    assert fixable(call("doctor", "--json", "--fix", status=statuses.FOUND)) == both
    assert (items.get_nowait(), tasks.take(0).data) == ("item", "task")


def test_items_and_tasks_of_a_stopped_process_are_found_when_its_lease_has_ended(
    call, valkey, name, stopped
):
    """`why` and doctor judge the process as consumers do that wait for its items and tasks."""
    items = JoinableQueue(0, "items", url=valkey.url, prefix=name, lease=1)
    tasks = TaskQueue("tasks", url=valkey.url, prefix=name, lease=1)
    items.put("item")
    tasks.put("task")
    consumer, worker = stopped("get", items), stopped("take", tasks)
    both = {"queue 'items'", "queue 'tasks'"}
    until(lambda: fixable(call("doctor", "--json", status=statuses.FOUND)) == both)
    assert (
        f"pid {consumer.pid} on host {HERE} has it, and is stopped, and let its lease end; it goes "
        "back when a consumer waits"
    ) in items.why_blocked().sentence
    assert tasks.why_blocked().sentence.startswith(
        "No task is ready: 1 task is taken by processes that have ended or let their leases end"
    )
    assert [taker.peer.pid for taker in tasks.why_blocked().takers] == [worker.pid]
    assert fixable(call("doctor", "--json", "--fix", status=statuses.FOUND)) == both
    assert (items.get_nowait(), tasks.take(0).data) == ("item", "task")


def fixable(found):
    return {one["subject"] for one in found if one["fixable"]}


def test_unsigned_items_and_those_set_aside_are_named(call, valkey, name):
    options = {"url": valkey.url, "prefix": name}
    queue = Queue(0, "items", authkey=b"k" * 16, **options)
    queue.put("signed")
    Queue(0, "items", **options).put("unsigned")
    inside.run(queue, inside.operations(queue).reject(b"aside"))
    found = call("doctor", "--json", status=statuses.FOUND)
    problems = [one["problem"] for one in found if one["subject"] == "queue 'items'"]
    assert problems == [
        "Of its next 2 items, 1 is not signed, and the others are.",
        "1 item is set aside.",
    ]


@pytest.mark.parametrize(
    ("part", "problem", "then"),
    [
        ("bound", "Its bound is missing", [2, 3]),
        ("not_full", "The key that says that there is space is missing", [2, 3]),
        ("data", "3 items were put into it, 1 were got and 0 are queued", []),
        ("produced_messages", "0 items were put into it, 1 were got and 2 are queued", [2, 3]),
        ("producer_free", "The key that lets a client put is missing", [2, 3]),
    ],
)
def test_a_missing_key_is_named_and_the_items_that_are_left_can_be_got(
    call, valkey, name, part, problem, then
):
    queue = Queue(3, "jobs", url=valkey.url, prefix=name)
    queue.put_many([1, 2, 3])
    queue.get()
    with valkey.client() as client:
        assert client.delete(keys.key(name, "jobs", part))
    found = call("doctor", "--json", status=statuses.FOUND)
    problems = [one["problem"] for one in found if one["subject"] == "queue 'jobs'"]
    assert [text[: len(problem or "")] for text in problems] == ([problem] if problem else [])
    if part == "producer_free":
        call("unlock", "jobs", "producer")
    again = Queue(3, "jobs", url=valkey.url, prefix=name)
    again.put_many([4] * (3 - len(then)), timeout=LIMIT)
    assert again.full()
    assert again.get_many(3) == [*then, *[4] * (3 - len(then))]


def test_data_of_a_former_queue_is_named_and_removed_when_asked(call, valkey, name):
    with valkey.client() as client:
        for one in ("jobs", "mine", "theirs"):
            queue = Queue(0, one, url=valkey.url, prefix=name)
            inside.run(queue, inside.operations(queue).reject(b"aside"))
            if one != "mine":  # as another implementation does, which knows no other keys
                key = {part: keys.key(name, one, part) for part in keys.PROTOCOL}
                client.delete(*key.values())
                client.mset({key["bound"]: 0, key["consumed_bytes"]: 0})
                for part in ("producer_free", "consumer_free", "not_full"):
                    client.lpush(key[part], 0)
            if one == "theirs":  # nothing is kept
                client.delete(*(keys.key(name, one, part) for part in keys.OWN))

    def look(*arguments):
        found = call("doctor", "--json", *arguments, status=statuses.FOUND)
        return {
            one["subject"]: (one["problem"][:33], one["fixed"])
            for one in found
            if one["subject"].startswith("queue ")
        }

    aside = ("1 item is set aside.", False)
    kept = "The data beside its items (items "
    assert look() == look() == {"queue 'jobs'": (kept, False), "queue 'mine'": aside}
    assert look("--fix") == {"queue 'jobs'": (kept, True), "queue 'mine'": aside}
    assert look() == {"queue 'mine'": aside}


def test_anonymous_queues_of_ended_processes_are_removed(call, valkey, name):
    run_and_die(programs.put_and_die, valkey.url, name)
    (left,) = call("ls", "--json")
    found = call("doctor", "--json", status=statuses.FOUND)
    assert [one["fixable"] for one in found if left["name"] in one["subject"]] == [True]
    call("gc", "--yes")
    assert call("ls", "--json") == []


def test_a_server_that_removes_keys_is_named_and_one_that_is_full_says_so(name):
    server = Server("valkey", config="maxmemory 3mb\nmaxmemory-policy allkeys-lru\n")
    try:
        server.start()
        result = CliRunner().invoke(app, ["doctor", "--json", "--url", server.url])
        assert result.exit_code == statuses.FOUND, result.output
        subjects = [json.loads(line)["subject"] for line in result.stdout.splitlines()]
        assert "maxmemory-policy is allkeys-lru" in subjects
        with server.client() as client:
            client.config_set("maxmemory-policy", "noeviction")
        queue = Queue(0, name, url=server.url)
        with pytest.raises(BrokerFull, match=r"no memory left .*Get items, purge unused queues"):
            queue.put_many([bytes(100_000)] * 100)
        assert queue.get() == bytes(100_000)
    finally:
        server.stop()


def test_a_process_that_acknowledged_all_it_took_is_no_trouble(call, valkey, name):
    queue = JoinableQueue(0, "jobs", url=valkey.url, prefix=name)
    queue.put_many(["a", "b"])
    run_and_die(programs.finish_and_die, queue)
    found = call("doctor", "--json", status=statuses.FOUND)
    assert [one for one in found if one["subject"] == "queue 'jobs'"] == []


def test_a_role_of_a_dead_client_of_another_implementation_is_named(valkey, name):
    queue = opened(Queue(1, name, url=valkey.url))
    theirs = StepwiseClient(valkey.port, name)
    theirs.take("producer")
    theirs.abort()
    result = CliRunner().invoke(app, ["doctor", "--json", "--url", valkey.url])
    found = map(json.loads, result.output.splitlines())
    (role,) = [one for one in found if one["subject"] == f"queue {name!r}"]
    assert role["problem"].startswith(
        "The producer role is with a client of another implementation"
    )
    assert role["advice"].startswith(f"`pressure-mp unlock {name} producer`")
    assert not role["fixable"]
    assert CliRunner().invoke(app, ["unlock", name, "producer", "--url", valkey.url]).exit_code == 0
    queue.delete()
