"""Commands that look at queues and put them right, with what programs leave behind."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import threading

import inside
import pytest
from cli.runs import MAIN, environment, python
from click.testing import CliRunner
from opened import opened
from stepwise import StepwiseClient
from waiting import LIMIT, Background, until

from pressure_mp import Empty, FairQueue, JoinableQueue, LifoQueue, Queue, TaskQueue, __version__
from pressure_mp.cli.app import app


class Broken:
    """An object whose unpickling would run a command: the output tells that, and it is not run."""

    def __reduce__(self):
        return os.system, ("exit 1",)


@pytest.fixture
def url(broker):
    return broker.url


@pytest.fixture
def call(url, name):
    """Runs a command in this process; its output, when it ends as it should."""

    def run(*arguments, status=0, **more):
        options = ["--url", url, "--prefix", name]
        result = CliRunner().invoke(app, [*map(str, arguments), *options], **more)
        assert result.exit_code == status, (result.output, result.exception)
        return result.stdout if status == 0 else result.output

    return run


@pytest.fixture
def make(url, name):
    return lambda kind, *args, **options: opened(kind(*args, url=url, prefix=name, **options))


def test_configure_changes_the_given_options_and_shows_all(call, make):
    queue = make(TaskQueue, "tasks")
    shown = call("configure", "tasks", "--ttr", "60", "--max-deliveries", "none", "--json")
    assert json.loads(shown) == {
        "ttr": 60.0,
        "ttl": None,
        "zombie": None,
        "keep": False,
        "max_deliveries": None,
        "id": "time64",
        "per_key": None,
        "maxsize": 0,
    }
    queue.put("a")
    task = queue.take(0)
    assert task.due == pytest.approx(task.since + 60, abs=0.1)
    assert call("configure", "tasks", "--keep").splitlines()[:4] == [
        "ttr             60.0",
        "ttl             none",
        "zombie          none",
        "keep            True",
    ]
    assert "keep and zombie" in call("configure", "tasks", "--zombie", "5", status=1)
    assert "'soon' is not a number of seconds, nor 'none'" in call(
        "configure", "tasks", "--ttl", "soon", status=2
    )
    shown = call("configure", "tasks", "--no-keep", "--zombie", "forever", "--id", "uuid")
    assert {"zombie          forever", "id              uuid"} <= {*shown.splitlines()}
    shown = call("configure", "tasks", "--per-key", "2")
    assert shown.splitlines()[-2] == "per_key         2"
    shown = call("configure", "tasks", "--per-key", "none")
    assert shown.splitlines()[-2] == "per_key         none"
    task.ack()
    assert queue.peek(task.id).state == "Z"


def test_a_queue_of_tasks_is_paused_and_resumed_or_one_tube_of_it(call, make):
    queue = make(TaskQueue, "tasks")
    queue.put(1, tube="a")
    assert call("pause", "tasks", "--tube", "a") == ""
    assert call("ls").split("\t")[-1] == "1 tube paused\n"
    assert call("pause", "tasks") == ""
    assert call("ls").split("\t")[-1] == "paused, 1 tube paused\n"
    (found,) = map(json.loads, call("ls", "--json").splitlines())
    assert (found["paused"], found["paused_tubes"]) == (True, ["a"])
    found = json.loads(call("info", "tasks", "--json"))
    assert (found["paused"], found["paused_tubes"]) == (True, ["a"])
    assert "paused tubes" in call("info", "tasks")
    assert "`pressure-mp resume tasks`" in call("why", "tasks")
    with pytest.raises(Empty):
        queue.take(0)
    assert call("resume", "tasks") == ""
    assert "--tube a" in call("why", "tasks")
    assert call("resume", "tasks", "--tube", "a") == ""
    assert queue.take(0).data == 1
    make(Queue, 3, "jobs")
    assert "only queues of tasks" in call("pause", "jobs", status=2)


def test_schedules_of_a_queue_of_tasks_are_added_shown_and_removed(call, make):
    queue = make(TaskQueue, "tasks", serializer="text")
    assert call("schedule", "tasks") == ""
    name, when, zone, left = call("schedule", "tasks", "3600", "count").rstrip().split("\t")
    assert (when, zone) == ("3600 s", "UTC")
    assert left in ("in 60 min", "in 1 h")
    cron = ("0 6 * * 1-5", "mail", "--name", "mail", "--timezone", "Europe/Paris", "--tube", "a")
    call("schedule", "tasks", *cron, "--missed", "all")
    assert {one.name: (one.when, one.timezone) for one in queue.schedules()} == {
        name: (3600.0, "UTC"),
        "mail": ("0 6 * * 1-5", "Europe/Paris"),
    }
    found = [json.loads(line) for line in call("schedule", "tasks", "--json").splitlines()]
    assert found == [one._asdict() for one in queue.schedules()]
    make(TaskQueue, "tasks:periodic", serializer="raw").switch(name, "buried")
    assert f"{name}\t3600 s\tUTC\tburied" in call("schedule", "tasks").splitlines()
    assert call("schedule", "tasks", "--remove", name).split("\t")[0] == "mail"
    assert "has no schedule" in call("schedule", "tasks", "--remove", name, status=4)
    call("schedule", "tasks", "0.01", "soon", "--name", "mail")
    stop = threading.Event()
    queue.run(lambda task: stop.set(), stop=stop)
    assert {task.data for task in queue.list()} <= {"soon"}
    assert queue.stats().transitions["R-T"] >= 1


def test_a_schedule_that_cannot_be_is_refused(call, make):
    queue = make(TaskQueue, "tasks")
    assert "no cron line" in call("schedule", "tasks", "hourly", "data", status=1)
    assert "give both" in call("schedule", "tasks", "60", status=2)
    assert "give WHEN and DATA" in call("schedule", "tasks", "--name", "mail", status=2)
    assert queue.schedules() == []
    make(Queue, 3, "jobs")
    assert "only queues of tasks" in call("schedule", "jobs", status=2)


def test_the_rate_of_a_queue_of_tasks_is_limited_or_of_one_tube_of_it(call, make):
    queue = make(TaskQueue, "tasks")
    queue.put_many([1, 2, 3], tube="a")
    assert call("limit", "tasks", "100/s") == ""
    assert call("limit", "tasks", "1/2.5min", "--tube", "a") == ""
    assert [(one.number, one.per) for one in queue.stats().limits] == [(100, 1), (1, 150)]
    assert queue.take(0).data == 1
    with pytest.raises(Empty):
        queue.take(0)
    found = json.loads(call("info", "tasks", "--json"))["limits"]
    assert [(one["number"], one["tube"], one["used"]) for one in found] == [
        (100, None, 1),
        (1, "a", 1),
    ]
    assert "number 1, per 2 min" in call("info", "tasks")
    assert "a limit is used up: 1 in 150 s of tube 'a'" in call("why", "tasks")
    assert call("limit", "tasks", "none", "--tube", "a") == ""
    assert queue.take(0).data == 2
    assert call("limit", "tasks", "1/h", "--each-key") == ""
    queue.put_many([4, 5], key="k", priority=-1)
    assert [queue.take(0).data, queue.take(0).data] == [4, 3]
    assert "limit: 1 in 3600 s of each key" in call("why", "tasks")
    for wrong in ("0/s", "1", "1/day", "-1/s"):
        assert "is not a rate" in call("limit", "--", "tasks", wrong, status=2)
    make(Queue, 3, "jobs")
    assert "only queues of tasks" in call("limit", "jobs", "1/s", status=2)


def test_configure_changes_the_bound_of_a_queue_of_items(call, make):
    queue = make(Queue, 3, "jobs")
    assert call("configure", "jobs", "--maxsize", "5") == "maxsize         5\n"
    assert queue.maxsize == 5
    assert "for tasks" in call("configure", "jobs", "--ttr", "5", status=2)
    call("configure", "nothing", status=4)


def test_configure_ls_info_and_why_know_the_bound_of_a_queue_of_tasks(call, make):
    queue = make(TaskQueue, "tasks")
    assert "maxsize         2" in call("configure", "tasks", "--maxsize", "2").splitlines()
    assert queue.maxsize == 2
    queue.put_many(["a", "b"])
    waiting = Background(queue.put, "c")
    until(lambda: json.loads(call("ls", "--json"))["putting"] == 1)
    told = json.loads(call("info", "tasks", "--json"))
    assert {"maxsize": 2, "putting": 1}.items() <= told.items()
    assert call("ls").splitlines()[0].split("\t")[2:4] == ["2", "2"]
    assert "full: 2 of 2 tasks" in call("why", "tasks")
    call("configure", "tasks", "--maxsize", "3")
    waiting.result()


def test_ls_shows_every_queue_of_every_kind_and_those_that_match(call, make):
    make(Queue, 3, "jobs-1").put_many([1, 2])
    make(LifoQueue, 0, "jobs-2").shutdown()
    make(TaskQueue, "tasks").put("work", delay=9)
    assert call("ls", "--sort", "name").splitlines() == [
        "jobs-1\tfifo\t2\t3\t0\t0\t0\t0\t\topen",
        "jobs-2\tlifo\t0\t-\t0\t0\t0\t0\t\tshut down",
        "tasks\ttasks\t0\t-\t0\t0\t0\t0\t\topen",
    ]
    assert [line.split()[0] for line in call("ls", "jobs-*", "--sort", "depth").splitlines()] == [
        "jobs-1",
        "jobs-2",
    ]
    (found,) = map(json.loads, call("ls", "--kind", "tasks", "--json").splitlines())
    assert (found["name"], found["tasks"]["W"]) == ("tasks", 1)
    (found,) = map(json.loads, call("ls", "jobs-1", "--rates", "0.01", "--json").splitlines())
    assert (found["puts_per_second"], found["gets_per_second"]) == (0, 0)


def test_top_tells_a_program_what_it_saw_at_each_look(call, make):
    make(Queue, 3, "jobs").put(1)
    lines = call("top", "--json", "-n", "2", "--interval", "0.1").splitlines()
    first, second = map(json.loads, lines)
    assert (first["name"], first["length"], first["age"]) == ("jobs", 1, None)
    assert second["age"] >= 0.1
    assert second["puts_per_second"] == second["gets_per_second"] == 0
    assert (second["putting_for"], second["consumers_are_slow"]) == (None, False)


def test_info_tells_all_that_is_counted(call, make):
    make(Queue, 3, "jobs").put_many([1, 2])
    assert {"name": "jobs", "discipline": "fifo", "length": 2, "maxsize": 3}.items() <= json.loads(
        call("info", "jobs", "--json")
    ).items()
    make(TaskQueue, "tasks").put("work")
    assert json.loads(call("info", "tasks", "--json"))["ready"] == 1
    assert "does not exist" in call("info", "none", status=4)


def test_peek_shows_items_of_every_serializer_and_unpickles_nothing(call, make):
    queue = make(Queue, 0, "jobs")
    queue.put_many([{"page": 1}, "a\x1b[31mb", Broken()])
    make(Queue, 0, "jobs", serializer="raw").put_many([b'{"n": [1]}', b"text", b"\xff\0"])
    make(Queue, 0, "jobs", authkey=b"k" * 16).put("signed")
    queue.put(bytes(1 << 18))
    shown = call("peek", "jobs").splitlines()
    assert shown[:2] == ["{'page': 1}", "a\\x1b[31mb"]
    assert shown[2] == f"<{os.system.__module__}.system('exit 1')>"
    assert shown[3:6] == ['{"n": [1]}', "text", "<2 bytes: b'\\xff\\x00'>"]
    assert shown[6].startswith("signed (signed with key ")
    assert shown[7] == "<262,153 bytes, kept apart>"
    found = [json.loads(line) for line in call("peek", "jobs", "--json").splitlines()]
    assert [one["kind"] for one in found] == [
        *["pickle"] * 3,
        "json",
        "text",
        "bytes",
        "pickle",
        "large",
    ]
    assert found[3]["value"] == {"n": [1]}
    assert queue.qsize() == 8


def test_why_says_first_in_one_sentence_what_to_do(call, make):
    queue = make(Queue, 1, "jobs")
    queue.put("x")
    assert call("why", "jobs").splitlines()[0] == (
        "The queue is full (1 of 1) and no consumer was ever seen: start a consumer."
    )
    consumer = multiprocessing.get_context("spawn").Process(target=queue.get)
    consumer.start()
    consumer.join()
    queue.put("y")
    ended = f"pid {consumer.pid} on host {os.uname().nodename}"
    assert json.loads(call("why", "jobs", "--json"))["sentence"] == (
        f"The queue is full (1 of 1) and its only known consumer, {ended}, has ended: "
        "start a consumer."
    )
    workers = [json.loads(line) for line in call("workers", "jobs", "--json").splitlines()]
    assert [(one["role"], one["pid"], one["alive"]) for one in workers] == [
        ("producer", os.getpid(), True),
        ("consumer", consumer.pid, False),
    ]


def test_the_workers_of_a_queue_of_tasks_are_shown_with_the_tasks_that_they_have(call, make):
    queue = make(TaskQueue, "tasks")
    queue.put("data", id="one", tube="a")
    over, stop = threading.Event(), threading.Event()
    options = {"concurrency": 2, "tube": "a", "stop": stop}
    run = threading.Thread(target=queue.run, args=(lambda task: over.wait(),), kwargs=options)
    run.start()
    until(lambda: any(one.tasks and one.version for one in queue.workers()))
    (worker,) = [json.loads(line) for line in call("workers", "tasks", "--json").splitlines()]
    assert (worker["pid"], worker["alive"], worker["version"]) == (os.getpid(), True, __version__)
    assert (worker["concurrency"], worker["tubes"], worker["tasks"]) == (2, ["a"], 1)
    assert worker["works"] >= worker["at"][0]["for"] >= 0
    assert [(task["id"], task["deliveries"]) for task in worker["at"]] == [("one", 1)]
    cells = call("workers", "tasks").rstrip("\n").split("\t")
    assert cells[:4] == ["worker", os.uname().nodename, str(os.getpid()), "alive"]
    assert cells[5:8] == ["2", "a", "1"]
    assert cells[8].startswith("one for ")
    over.set()
    until(lambda: not any(worker.tasks for worker in queue.workers()))
    queue.put("data")
    assert call("why", "tasks").startswith("1 task is ready, and 1 worker took none yet")
    stop.set()
    run.join()


def test_tasks_are_shown_with_their_last_error_and_go_back_or_go(call, make):
    queue = make(TaskQueue, "tasks")
    for number in range(4):
        queue.put({"number": number}, id=f"task-{number}")
        queue.take().bury(error=f"failed at {number}")
    assert "start a worker" not in call("why", "tasks")
    assert call("why", "tasks").startswith("No task is ready: 4 tasks are buried")
    shown = call("tasks", "tasks", "--state", "buried").splitlines()
    assert [line.split("\t")[7:] for line in shown[:1]] == [["failed at 0", "{'number': 0}"]]
    assert call("requeue", "tasks", "task-1") == "1 put back.\n"
    assert call("requeue", "tasks", "--match", "failed at 2") == "1 put back.\n"
    assert call("drop", "tasks", "task-3", "--yes") == "1 removed.\n"
    states = [json.loads(line)["state"] for line in call("tasks", "tasks", "--json").splitlines()]
    assert states == ["R", "R", "B"]
    assert call("requeue", "tasks", "--all") == "1 put back.\n"
    assert "is ready" in call("requeue", "tasks", "task-1", status=1)
    assert "never put" in call("requeue", "tasks", "other", status=4)
    assert call("purge", "tasks", "--yes") == "3 dropped.\n"


def test_one_task_is_shown_in_full_with_its_traceback_and_its_progress(call, make):
    queue = make(TaskQueue, "tasks")
    queue.put("data", id="7\x1b[0m")
    try:
        with queue.take(backoff=0):
            raise ValueError("why\x1b[0m")
    except ValueError:
        pass
    queue.take().progress({"rows": 3})
    listed = call("tasks", "tasks")
    assert listed.split("\t")[6:] == ["{'rows': 3}", "ValueError: why\\x1b[0m", "data\n"]
    shown = call("tasks", "tasks", "7\x1b[0m")
    assert "\nprogress    {'rows': 3}\n" in shown
    assert "\nerror       ValueError: why\\x1b[0m\n" in shown
    assert "\n\nTraceback (most recent call last):\n" in shown
    assert shown.endswith("\nValueError: why\\x1b[0m\n")
    told = json.loads(call("tasks", "tasks", "7\x1b[0m", "--json"))
    assert told["progress"]["shown"] == "{'rows': 3}"
    assert told["traceback"].startswith("Traceback")
    queue.put("data", id=8)
    told = json.loads(call("tasks", "tasks", "8", "--json"))
    assert (told["id"], told["progress"], told["traceback"]) == (8, None, None)
    assert "never put" in call("tasks", "tasks", "9", status=4)
    assert "excludes" in call("tasks", "tasks", "8", "--state", "R", status=2)


def test_items_that_were_set_aside_are_put_back_or_removed(call, make):
    queue = make(Queue, 0, "jobs", serializer="text")
    operations = inside.operations(queue)
    for item in (b"one", b"two", b"three"):
        inside.run(queue, operations.reject(item))
    assert call("peek", "jobs", "--rejected").splitlines() == ["one", "two", "three"]
    assert call("requeue", "jobs", "2") == "1 put back.\n"
    assert call("drop", "jobs", "--match", "thr", "--yes") == "1 removed.\n"
    assert queue.get() == "two"
    assert "select with" in call("requeue", "jobs", status=2)
    assert "at the places 1 to 1" in call("drop", "jobs", "2", "--yes", status=2)
    assert call("drop", "jobs", "--all", "--yes") == "1 removed.\n"
    assert queue.rejected() == []


def test_queues_are_purged_shut_down_drained_and_deleted(call, make):
    queue = make(JoinableQueue, 0, "jobs")
    queue.put_many([1, 2, 3])
    assert "add --yes" in call("purge", "jobs", status=2)
    assert call("purge", "jobs", "--yes") == "3 dropped.\n"
    queue.put(4)
    told = call("drain", "jobs", "--timeout", "0.01", "--json", status=3)
    assert told.splitlines()[-1] == '{"done":false,"left":1}'
    assert queue.is_shutdown
    queue.get()
    call("drain", "jobs", "--timeout", "0.01", status=3)
    queue.task_done()
    call("drain", "jobs")
    call("shutdown", "jobs")
    make(FairQueue, str, name="fair")
    call("delete", "jobs", "fair", "--yes")
    assert not queue.exists()
    assert call("ls") == ""


def test_delete_removes_the_queues_that_exist_and_names_the_others(call, make):
    queue = make(Queue, 0, "jobs")
    queue.put("a")
    told = call("delete", "nothing", "jobs", "neither", "--yes", status=4)
    assert "queue 'nothing' does not exist" in told
    assert "queue 'neither' does not exist" in told
    assert not queue.exists()


def test_drain_says_that_it_shuts_the_queue_down_for_good(call, make):
    make(Queue, 0, "jobs").put("a")
    assert "Shutting 'jobs' down for good" in call("drain", "jobs", "--timeout", "0", status=3)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("memory://", "is private to one program"),
        ("nonsense", "has no scheme"),
        ("", "broker URL '' is empty (from the argument url)"),
        ("embedded://", "is private to one program"),
    ],
)
def test_a_url_that_no_other_process_can_use_is_an_error(url, complaint, monkeypatch):
    monkeypatch.delenv("PRESSURE_EMBEDDED_SOCKET", raising=False)
    monkeypatch.delitem(
        multiprocessing.current_process()._config, "pressure_mp_embedded", raising=False
    )
    result = CliRunner().invoke(app, ["put", "jobs", "--url", url], input="lost\n")
    assert (result.exit_code, complaint in result.output) == (2, True)


def test_a_command_that_a_program_starts_finds_its_private_server(name):
    environ = {**environment(name), "PRESSURE_URL": "embedded://"}
    program = (
        "import subprocess, sys; from pressure_mp import Queue; Queue(0, 'jobs').put('x'); "
        f"sys.exit(subprocess.call([sys.executable, '-c', {MAIN!r}, 'peek', 'jobs']))"
    )
    run = subprocess.run(
        python(program), env=environ, capture_output=True, text=True, timeout=LIMIT
    )
    assert (run.returncode, run.stdout) == (0, "x\n")


def test_an_error_names_the_command_for_the_other_kind_of_queue(call, make):
    make(TaskQueue, "work").put("x")
    make(Queue, 0, "jobs")
    assert "`pressure-mp tasks work` shows the tasks" in call("peek", "work", status=1)
    assert "'jobs' has the discipline fifo" in call("tasks", "jobs", status=1)
    told = call("put", "work", "--maxsize", 3, status=1, input="a line\n")
    assert "maxsize=0, not maxsize=3" in told
    assert "is not one of" in call("ls", "--kind", "list", status=2)


def test_drain_says_how_many_items_are_left(call, make):
    make(Queue, 0, "jobs").put("x")
    assert "1 item is left: waiting for the consumers." in call(
        "drain", "jobs", "--timeout", 1.5, status=3
    )


def test_a_role_of_a_dead_client_is_taken_away(valkey, name):
    queue = opened(Queue(1, name, url=valkey.url))
    theirs = StepwiseClient(valkey.port, name)
    theirs.take("producer")
    theirs.abort()

    def call(command, *arguments):
        result = CliRunner().invoke(app, [command, name, *arguments, "--url", valkey.url])
        assert result.exit_code == 0
        return result.stdout

    assert call("why").startswith("No process can put: a producer of another implementation")
    assert call("unlock", "producer") == "Taken from stepwise.\n"
    assert call("unlock", "producer") == "The producer role was free.\n"
    queue.put_nowait("x")
    queue.delete()
