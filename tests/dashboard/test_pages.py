"""What the pages of the dashboard show, on every engine, over a real socket."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import inside
import pytest
from dashboards import serving
from programs import stages
from started import quickly
from waiting import LIMIT, until

from pressure_mp import (
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    Queue,
    QueueDoesNotExistError,
    TaskQueue,
)
from pressure_mp.administration.rates import ORDERS, QueueRates
from pressure_mp.administration.troubles import find_troubles
from pressure_mp.dashboard.charts import spark
from pressure_mp.dashboard.pages import health
from pressure_mp.engines.contract.brokers import QueueSummary


@pytest.fixture
def options(full_url, name):
    return {"url": full_url, "prefix": name}


def test_every_view_tells_of_queues_of_every_kind(options):
    jobs = Queue(3, "jobs <1>", **options)
    jobs.put_many(["one", "two", "three"])
    inside.run(jobs, inside.operations(jobs).reject(b"aside"))
    LifoQueue(0, "other", **options).shutdown()
    tasks = TaskQueue("tasks", **options)
    tasks.put_many([1, 2, 3])
    tasks.take().bury(error=ValueError("no <such> file"))
    taken = tasks.take()
    late = TaskQueue("late", **options)
    late.put(1, id="one")
    late.take(0, ttr=0.001)
    with serving(**options) as dashboard:
        listed = dashboard.text("/")
        assert "4 queues, 1 full, 1 shut down, 2 with rejected items" in listed
        assert "jobs <1> fifo 3 3" in listed
        assert "other lifo 0 " in listed
        queue = dashboard.text("/queue?name=jobs+%3C1%3E&kind=fifo")
        assert "The queue is full (3 of 3)" in queue
        assert "queued 3 bound 3" in queue
        assert "producer pid" in queue
        assert "A put waits for space; the queue holds 3 of 3 items" in queue
        assert "Set aside: 1" in queue
        assert "1 task is ready" in dashboard.text("/queue?name=tasks&kind=tasks")
        assert "The ttr of task 'one' was over" in dashboard.text("/queue?name=late&kind=tasks")
        shown = dashboard.text("/tasks?name=tasks")
        assert "all 3 ready 1 waiting 0 taken 1 buried 1" in shown
        assert "ValueError: no <such> file" in shown
        buried = dashboard.text("/tasks?name=tasks&state=B")
        assert "no <such> file" in buried
        assert "There is no such task" in dashboard.text("/tasks?name=tasks&state=W")
        workers = dashboard.text("/workers")
        assert "has 1" in workers
        assert "jobs <1>" in workers
        assert "1 task is ready" in dashboard.text("/pipeline")
        health = dashboard.text("/health")
        assert "queue 'tasks' 1 task is buried." in health
        assert "1 item is set aside." in health
        assert "does not exist" in dashboard.text("/queue?name=nothing", 404)
        for strange in ("%00", "%ff", "jobs&kind=nonsense", "tasks&kind=fifo", "x" * 5000):
            dashboard.page(f"/queue?name={strange}", 404)
        assert "4 queues" in dashboard.text("/?" + "&".join(f"a{one}=1" for one in range(99)))
        jobs.delete()
        until(lambda: "3 queues," in dashboard.text("/"))
    taken.ack()


def test_the_workers_of_a_queue_are_shown_with_their_tasks(options):
    tasks = TaskQueue("tasks", **options)
    tasks.put("data", id="one", tube="a")
    over, stop = threading.Event(), threading.Event()
    asked = {"concurrency": 2, "tube": "a", "stop": stop}
    run = threading.Thread(target=tasks.run, args=(lambda task: over.wait(),), kwargs=asked)
    run.start()
    me = f"pid {os.getpid()} on {socket.gethostname()} alive"
    with serving(**options) as dashboard:
        until(lambda: "2 a 1 one for" in dashboard.text("/queue?name=tasks"))
        assert me in dashboard.text("/queue?name=tasks")
        until(lambda: "2 at a time of a, version" in dashboard.text("/workers"))
        assert f"{me} – – tasks has 1 for" in dashboard.text("/workers")
        over.set()
        stop.set()
        run.join()
        until(lambda: "No worker is there." in dashboard.text("/queue?name=tasks"))


def test_a_task_is_shown_with_its_traceback_and_its_progress(options):
    tasks = TaskQueue("tasks", **options)
    tasks.put("secret data", id="a <b>")
    try:
        with tasks.take(backoff=0):
            raise ValueError("no <such> file")
    except ValueError:
        pass
    tasks.take().progress("secret rows")
    address = f"/task?name=tasks&id={b'a <b>'.hex()}"
    with serving(**options) as dashboard:
        assert address.lstrip("/").replace("&", "&amp;") in dashboard.page("/tasks?name=tasks")
        shown = dashboard.text(address)
        assert "a <b>" in shown
        assert "State taken for" in shown
        assert "Taken 2" in shown
        assert "ValueError: no <such> file Traceback (most recent call last):" in shown
        assert "secret" not in shown
        for strange in ("", "&id=zz", "&id=00", "&id=%00"):
            dashboard.page(f"/task?name=tasks{strange}", 404)
    with serving(**options, show_content=True) as dashboard:
        shown = dashboard.text(address)
        assert "Progress pickle secret rows" in shown
        assert "secret data" in shown
    tasks.delete()


def test_the_pipeline_is_shown_in_order_with_the_queue_whose_consumers_hold_it_up(valkey, name):
    options = {"url": valkey.url, "prefix": name}
    first, last = Queue(2, "z-first", **options), Queue(1, "a-last", **options)
    between = quickly.Process(target=stages.carry, args=(first, last), daemon=True)
    between.start()
    with serving(**options) as dashboard, ThreadPoolExecutor() as threads:
        try:
            puts = threads.submit(first.put_many, list(range(9)))
            held_up = "The consumers of a-last are slow."
            row = "z-first 2 of 2 0 0 a-last 1 The queue is full (2 of 2)"

            def settled():
                page = dashboard.text("/pipeline")
                return page if row in page and held_up in page else ""

            shown = until(settled)
            assert shown.index(row) < shown.index("a-last 1 of 1")
            until(lambda: held_up in dashboard.text("/"))
            worker = f"pid {between.pid} on {socket.gethostname()} alive a-last has waited"
            until(lambda: worker in dashboard.text("/workers"))
            assert not puts.done()
        finally:
            between.kill()
            between.join()
            first.delete()
            last.delete()
    assert isinstance(puts.exception(), QueueDoesNotExistError)


class Makes:
    """Unpickling it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_the_content_of_items_is_hidden_unless_asked_for_and_never_unpickled(name, tmp_path):
    options = {"url": f"memory://{name}", "prefix": name}
    queue = JoinableQueue(0, "jobs", **options)
    queue.put_many(["<script>alert(1)</script>", {"secret": 1}, "x" * 5000, bytes(1 << 19)])
    made = tmp_path / "made"
    queue.put(Makes(str(made)))
    text = Queue(0, "text", serializer="text", **options)
    text.put('{"json": ["<b>"]}')
    inside.run(text, inside.operations(text).reject(b"\x80\x05 broken"))
    tasks = TaskQueue("tasks", **options)
    tasks.put("secret")
    pages = ("/queue?name=jobs", "/queue?name=text", "/tasks?name=tasks")
    with serving(**options) as dashboard:
        for page in pages:
            assert "secret" not in dashboard.page(page)
            assert "hidden" in dashboard.page(page)
    with serving(**options, show_content=True) as dashboard:
        jobs = dashboard.page(pages[0])
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in jobs
        assert "<script>alert" not in jobs
        assert "(5,000 characters)" in jobs
        assert "x" * 2001 not in jobs
        assert "bytes, kept apart" in jobs
        assert "STACK_GLOBAL" in jobs
        assert "open" in dashboard.text(pages[0])
        assert "{&quot;json&quot;: [&quot;&lt;b&gt;&quot;]}" in dashboard.page(pages[1])
        assert "cannot be read any further" in dashboard.page(pages[1])
        assert "secret" in dashboard.page(pages[2])
    assert not made.exists()


def test_items_that_would_be_long_or_deep_are_shown_in_short(name):
    options = {"url": f"memory://{name}", "prefix": name}
    text = b"X\xc0\xd4\x01\x00" + b"x" * 120_000 + b"q\x00"
    hostile = {
        "text": b"\x80\x02](" + text + b"h\x00" * 19_000 + b"e.",
        "depth": b"\x80\x02cmodule\nname\n" + b"]" * 9000 + b"a" * 8999 + b"\x85R.",
        "number": b"\x80\x02\x8b\x00\x70\x00\x00" + b"\x7f" * 0x7000 + b".",
    }
    PressureQueue("jobs", **options).create()
    jobs = PressureQueue("jobs", **options)
    for item in hostile.values():
        jobs.put(item)
    with serving(**options, show_content=True) as dashboard:
        page = dashboard.page("/queue?name=jobs")
        assert len(page) < 200_000
        assert "a pickle that cannot be shown: Exceeds the limit" in page
        assert "BINPUT 0" in page


def test_a_thousand_queues_are_filtered_ordered_and_shown_in_parts(name):
    options = {"url": f"memory://{name}", "prefix": name}
    for number in range(1000):
        Queue(0, f"tenant-{number:03}", **options).open()
    Queue.attach("tenant-500", **options).put_many([1] * 20)
    TaskQueue("tasks", **options).put_many(list(range(60)))
    with serving(**options) as dashboard:
        first = dashboard.text("/?sort=name")
        assert "1,001 queues" in first
        assert "1 to 100 of 1,001 Next" in first
        assert "tenant-098 fifo" in first
        assert "tenant-100 fifo" not in first
        last = dashboard.text("/?sort=name&kind=fifo&start=900")
        assert "tenant-999 fifo" in last
        assert "Previous 901 to 1000 of 1,000" in last
        deepest = dashboard.text("/?sort=depth")
        assert deepest.index("tenant-500") < deepest.index("tenant-000")
        found = dashboard.text("/?find=tenant-5%3F5")
        assert found.count(" fifo 0") == 10
        assert dashboard.page("/tasks?name=tasks&start=50").count('data-label="Task"') == 10
        assert "Previous 51 to 60 of 60" in dashboard.text("/tasks?name=tasks&start=50")
        assert "1 to 100 of 1,001" in dashboard.text("/?page=1&start=0")  # nothing of ours
        assert "No queue matches. Show all queues" in dashboard.text("/?find=nothing&kind=fifo")


def test_without_its_broker_the_pages_say_what_is_wrong(name):
    with serving("redis://127.0.0.1:1", name) as dashboard:
        assert "The broker cannot be asked: no broker answers" in dashboard.text("/")


def test_the_page_of_health_does_not_wait_for_many_queues(name, monkeypatch):
    """It says that they are being asked, and renews itself."""
    go_on = threading.Event()

    def look(place):
        go_on.wait(LIMIT)
        yield from find_troubles(place)

    monkeypatch.setattr(health, "find_troubles", look)
    monkeypatch.setattr(health, "_PATIENCE", 0.01)
    with serving(f"memory://{name}") as dashboard:
        assert "Each queue is being asked" in dashboard.text("health")
        go_on.set()
        until(lambda: "Loses data memory:// is this process" in dashboard.text("health"))


def test_the_queue_with_the_longest_wait_comes_first():
    def rates(name, putting, since):
        counts = dict.fromkeys(QueueSummary._fields, 0) | {"name": name, "putting": putting}
        return QueueRates(QueueSummary(**counts), 0.0, putting_since=since)

    several = [rates("new", 1, 9.0), rates("old", 1, 5.0), rates("none", 0, None)]
    several.sort(key=ORDERS["waiting"])
    assert [one.queue.name for one in several] == ["old", "new", "none"]


def test_a_wait_counts_from_the_last_time_that_another_call_was_served():
    counts = dict.fromkeys(QueueSummary._fields, 0) | {"name": "jobs", "putting": 1, "getting": 1}
    queue = QueueSummary(**counts)
    rates = QueueRates(queue, 1.0)
    for now, produced, consumed in [(2.0, 0, 0), (3.0, 1, 0), (4.0, 1, 1), (5.0, 1, 1)]:
        rates.update(queue._replace(produced=produced, consumed=consumed), now)
    assert (rates.putting_since, rates.getting_since) == (3.0, 4.0)


def test_a_queue_at_rest_has_a_short_line():
    assert str(spark([3] * 16, 0)).count(",") == 2
    assert str(spark([0, 0, 0, 5, 0, 0, 0], 0)).count(",") == 5
