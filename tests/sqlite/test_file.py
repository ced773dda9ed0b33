"""The file of queues in SQLite: what killed processes leave there, its size, and its folder."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
import started
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import AddressError, Empty, Queue, TaskQueue
from pressure_mp.engines import registry
from pressure_mp.engines.contract import session
from pressure_mp.engines.kv import bells
from pressure_mp.engines.sqlite import files

WRITER = """
import itertools, sys
from pressure_mp import Queue
url, me = sys.argv[1:]
queue = Queue(name="queue", url=url)
for number in itertools.count():
    print("try", f"{me}-{number}", flush=True)
    queue.put(f"{me}-{number}")
    print("put", f"{me}-{number}", flush=True)
"""


@pytest.fixture
def url(tmp_path):
    return f"sqlite://{tmp_path}/queues"


@pytest.fixture
def connect(tmp_path):
    return lambda: sqlite3.connect(tmp_path / "queues")


def test_items_of_killed_processes_are_there_once_and_the_file_is_whole(url, connect):
    chance = random.Random(1)
    tried, put = set(), set()
    for turn in range(3):
        command = [sys.executable, "-c", WRITER, url]
        writers = [
            subprocess.Popen(
                [*command, f"{turn}.{number}"],
                stdout=subprocess.PIPE,
                text=True,
                env=started.environment(),
            )
            for number in range(3)
        ]
        for writer in writers:
            for _ in range(chance.randrange(1, 60)):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        for writer in writers:
            out, _ = writer.communicate()
            said = [line.split() for line in out.splitlines(keepends=True) if line.endswith("\n")]
            tried.update(item for what, item in said if what == "try")
            put.update(item for what, item in said if what == "put")
    queue = Queue(name="queue", url=url)
    found = []
    while not queue.empty():
        found += queue.get_many(1000)
    assert len(found) == len({*found})
    assert put
    assert put <= {*found}
    with closing(connect()) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_that_is_forked_in_the_midst_of_a_transaction_can_use_the_file(url):
    """SQLite keeps the locks of a process in its memory, which the child has a copy of."""
    busy = Queue.create("busy", url=url)
    is_over = threading.Event()

    def use():
        while not is_over.is_set():
            busy.put(1)
            busy.get()

    threads = [Background(use) for _ in range(3)]
    try:
        for _ in range(60):
            child = os.fork()
            if child == 0:
                signal.alarm(10)
                Queue(name="child", url=url).put(1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        is_over.set()
    for thread in threads:
        thread.result()
    assert Queue(name="child", url=url).qsize() == 60


def test_a_forked_child_and_its_parent_use_the_queue(url):
    queue = Queue(name="queue", url=url)
    queue.put(0)
    for number in range(1, 6):
        child = os.fork()
        if not child:
            queue.put(number)
            os._exit(0)
        queue.put(-number)
        assert os.waitpid(child, 0)[1] == 0
    assert sorted(queue.get() for _ in range(11)) == list(range(-5, 6))


PUT = """
import sys
from pressure_mp import Queue
for url in sys.argv[1:]:
    Queue(name="queue", url=url).put("item")
"""


def test_another_process_wakes_calls_that_wait_at_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "TICK", HOURS)
    urls = [f"sqlite://{tmp_path}/{name}" for name in "ab"]
    queues = [Queue(name="queue", url=url) for url in urls]
    waiting = [Background(queue.get) for queue in queues]
    until(lambda: all(map(parks, waiting)))
    subprocess.run([sys.executable, "-c", PUT, *urls], check=True, env=started.environment())
    assert [one.result() for one in waiting] == ["item", "item"]


def test_the_thread_that_wakes_ends_when_no_session_waits(url):
    with pytest.raises(Empty):
        Queue(name="queue", url=url).get(timeout=0.01)
    (listening,) = [one for one in threading.enumerate() if one.name == "pressure bells"]
    bells.of_process.close()
    listening.join(LIMIT)
    assert not listening.is_alive()


def test_the_file_and_its_log_stay_small_while_items_pass_through(url, tmp_path):
    queue = Queue(name="queue", url=url)
    batch = [b"x" * 100] * 500
    sizes = []
    for _ in range(100):
        queue.put_many(batch)
        while not queue.empty():
            queue.get_many(500)
        sizes.append((tmp_path / "queues").stat().st_size)
    assert (tmp_path / "queues-wal").stat().st_size == files.SIZE
    assert max(sizes) < 500_000


def pass_through(queue, number):
    for _ in range(number):
        queue.put(b"x" * 5000)
        queue.get()


def test_the_log_grows_while_another_program_reads_and_is_cut_when_it_ends(url, connect, tmp_path):
    queue, log = Queue(name="queue", url=url), tmp_path / "queues-wal"
    pass_through(queue, 1)
    with closing(connect()) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM pressure_mp").fetchall()
        began = time.monotonic()
        pass_through(queue, 400)
        assert time.monotonic() - began < LIMIT  # nothing waited for the reader
        assert log.stat().st_size > 2 * files.SIZE
    pass_through(queue, 200)
    assert log.stat().st_size == files.SIZE


def test_no_connection_makes_a_checkpoint_by_itself(url):
    queue = Queue(name="queue", url=url)
    queue.put("item")
    connection = queue._at.binding.queue.space.store._files.connection
    assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)


def test_with_durability_the_disk_has_each_put_before_it_returns(url, monkeypatch):
    flushed = []
    flush = os.fdatasync
    monkeypatch.setattr(
        os,
        "fdatasync",
        lambda file: flushed.append(os.readlink(f"/proc/self/fd/{file}")) or flush(file),
    )
    queue = Queue(name="queue", url=url, durability="fsync")
    queue.put("item")
    assert [path.endswith("/queues-wal") for path in flushed] == [True]
    TaskQueue(name="tasks", url=url, durability="fsync").put("task")
    assert len(flushed) == 2
    queue.get()
    assert len(flushed) == 2


def test_a_folder_to_which_others_can_write_is_refused(url, tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(AddressError, match="other users can write to"):
        Queue(name="queue", url=url).put("item")


def test_a_url_names_a_file_by_an_absolute_path():
    four, three = (registry.parse(f"sqlite:{slashes}folder/file") for slashes in ("////", "///"))
    assert four == three
    for url in ("sqlite://relative/path", "sqlite://", "sqlite:///folder/", "sqlite://me@/path"):
        with pytest.raises(AddressError):
            Queue(name="queue", url=url)


def test_calls_wait_again_when_no_thread_could_be_started_for_a_moment(tmp_path, name):
    """It needs a process in which nothing has waited before."""
    program = """
import sys, threading
from pressure_mp import Empty, Queue
q = Queue(name="q", url=sys.argv[1])
q.open()
start = threading.Thread.start
def refuse(thread):
    if thread.name == "pressure bells":
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = refuse
for _ in range(2):
    try:
        q.get(timeout=0.1)
    except RuntimeError as error:
        print(error)
    except Empty:
        print("empty")
    threading.Thread.start = start
"""
    done = subprocess.run(
        [sys.executable, "-c", program, f"sqlite://{tmp_path / name}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["can't start new thread", "empty"]
