"""A full disk: puts are refused, all that is queued can be got, and then puts work again."""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress

import pytest
import started
from disks import quota, small_disk

from pressure_mp import BrokerFull, JoinableQueue, Queue, TaskQueue
from pressure_mp.engines.sqlite import files

ITEM = b"x" * 1000


@pytest.fixture
def disk(tmp_path):
    """A folder on a disk of 8 MB, and what makes it larger."""
    place = tmp_path / "disk"
    with small_disk(place, 8, "700", 0) as enlarge:
        yield place, enlarge


@pytest.fixture
def url(disk):
    return f"sqlite://{disk[0]}/queues"


def fill(put):
    """Put until the disk is full; return how many were put."""
    for number in range(100_000):
        try:
            put(number)
        except BrokerFull as error:
            assert "disk is full" in str(error)  # noqa: PT017
            return number
    raise AssertionError("the disk is never full")


def get_all(queue):
    got = []
    while not queue.empty():
        got += queue.get_many(500)
    return got


@pytest.mark.parametrize("size", [1, 50], ids=["singly", "in batches"])
def test_all_can_be_got_and_then_put_again(url, size):
    queue = Queue(name="queue", url=url)
    for _ in range(3):
        put = fill(lambda number: queue.put_many([(number, ITEM)] * size))
        assert put * size > 300
        with pytest.raises(BrokerFull):
            queue.put(ITEM)
        assert get_all(queue) == [(number, ITEM) for number in range(put) for _ in range(size)]
        queue.put("again")
        assert queue.get() == "again"


def test_puts_in_transactions_of_the_program_leave_the_space_that_gets_need(url, disk):
    queue = Queue(name="queue", url=url)
    assert queue.empty()  # which opens it, before the transaction
    with closing(sqlite3.connect(disk[0] / "queues")) as own:

        def put(number):
            with own:
                queue.put((number, ITEM), connection=own)

        put_by_own = fill(put)
        assert put_by_own > 300
    assert get_all(queue) == [(number, ITEM) for number in range(put_by_own)]
    queue.put("again")
    assert queue.get() == "again"


def test_items_that_are_acknowledged_one_by_one_can_be_got(url):
    queue = JoinableQueue(name="queue", url=url)
    put = fill(lambda number: queue.put((number, ITEM)))
    for number in range(put):
        assert queue.get()[0] == number
        queue.task_done()
    queue.put("again")


def test_tasks_can_be_done_buried_and_removed(url):
    tasks = TaskQueue("tasks", url=url)
    put = fill(lambda number: tasks.put((number, ITEM)))
    for number in range(put // 2):
        task = tasks.take()
        assert task.data[0] == number
        task.ack()
    tasks.take().bury()
    tasks.delete()
    TaskQueue("tasks", url=url).put("again")


def test_all_can_be_got_where_a_quota_is_used_up(tmp_path):
    with quota(tmp_path / "disk", 12) as folder:
        queue = Queue(name="queue", url=f"sqlite://{folder}/queues")
        put = fill(lambda number: queue.put_many([(number, ITEM)] * 50))
        assert put * 50 > 300
        assert get_all(queue) == [(number, ITEM) for number in range(put) for _ in range(50)]


@pytest.mark.parametrize(
    ("call", "second_file"), [("open", True), ("rename", True), ("unlink", False)]
)
def test_all_can_be_got_after_an_interrupt_while_the_ballast_is_given_up(
    url, disk, monkeypatch, call, second_file
):
    interrupts, plain = [], getattr(os, call)

    def interrupted(path, *rest):
        done = plain(path, *rest)
        if str(path).endswith(("-ballast", "-ballast-new")) and not interrupts:
            interrupts.append(path)
            raise KeyboardInterrupt
        return done

    def refused(*paths):
        raise OSError(errno.ENOSPC, "no space for a second file")

    queue = Queue(name="queue", url=url)
    queue.put(ITEM)
    with monkeypatch.context() as patch:
        if not second_file:
            patch.setattr(os, "rename", refused)
        patch.setattr(os, call, interrupted)
        with suppress(KeyboardInterrupt):
            fill(lambda number: queue.put(ITEM))
    fill(lambda number: queue.put(ITEM))
    assert interrupts
    count = queue.qsize()
    with pytest.raises(OSError, match="space"):
        (disk[0] / "other").write_bytes(b"x" * (8 << 20))
    assert len(get_all(queue)) == count


LIMITED = """
import resource, sys
from pressure_mp import BrokerFull, Queue
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, hard))
queue = Queue(name="queue", url=sys.argv[1])
for _ in range(2):
    try:
        for put in range(100_000):
            queue.put((put, b"x" * 1000))
    except BrokerFull as error:
        print(str(error).partition(": ")[2])
    print(put, [queue.get()[0] for _ in range(queue.qsize())] == list(range(put)))
"""


def test_all_can_be_got_where_the_size_of_files_is_limited(tmp_path):
    """``ulimit -f``."""
    url = f"sqlite://{tmp_path}/queues"
    command = [sys.executable, "-c", LIMITED, url]
    told = subprocess.run(
        command, check=True, capture_output=True, text=True, env=started.environment()
    ).stdout.splitlines()
    assert told[0].startswith(
        "a put needs 3584 KB, and this process may write files of at most 8192"
    )
    for line in told[1::2]:
        put, was_all_got = line.split()
        assert int(put) > 3000
        assert was_all_got == "True"


GET = """
import sys
from pressure_mp import Queue
queue = Queue(name="queue", url=sys.argv[1])
print(sum(len(queue.get_many(500)) for _ in iter(queue.empty, True)))
"""


def test_a_process_that_starts_then_can_get_all(url):
    put = fill(lambda number: Queue(name="queue", url=url).put((number, ITEM)))
    command = [sys.executable, "-c", GET, url]
    got = subprocess.run(
        command, check=True, capture_output=True, text=True, env=started.environment()
    )
    assert int(got.stdout) == put


def test_all_can_be_got_if_no_process_had_the_file_and_another_program_filled_the_disk(url, disk):
    command = [sys.executable, "-c", PUT, url]
    subprocess.run(command, check=True, env=started.environment())
    other = disk[0] / "other"
    with pytest.raises(OSError, match="space"):
        other.write_bytes(b"x" * (8 << 20))
    queue = Queue(name="queue", url=url)
    with pytest.raises(BrokerFull):
        queue.put("item")
    assert get_all(queue) == [ITEM] * 100
    other.unlink()
    queue.put("item")


PUT = """
import sys
from pressure_mp import Queue
from pressure_mp.engines import registry
queue = Queue(name="queue", url=sys.argv[1])
queue.put_many([b"x" * 1000] * 100)
(engine,) = registry._open.values()
engine.close()  # so there is no log
"""


def test_puts_go_on_when_the_disk_has_space_again(url, disk):
    queue = Queue(name="queue", url=url)
    fill(lambda number: queue.put_many([ITEM] * 50))
    disk[1](32)
    queue.put(ITEM)
    assert (disk[0] / "queues-ballast").stat().st_size > 0


def test_a_disk_too_small_for_the_ballast_has_queues_and_the_log_says_so(url, disk, caplog):
    (disk[0] / "other").write_bytes(b"x" * (3 << 20))
    with caplog.at_level(logging.WARNING, "pressure_mp"):
        queue = Queue(name="queue", url=url)
        queue.put(ITEM)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "has no space for" in caplog.text
    assert not (disk[0] / "queues-ballast").exists()
    assert not (disk[0] / "queues-ballast-new").exists()
    assert get_all(queue) == [ITEM]


def test_a_ballast_file_that_a_killed_process_left_is_used(url, disk):
    new = disk[0] / "queues-ballast-new"
    new.write_bytes(b"x" * 1000)
    Queue(name="queue", url=url).put(ITEM)
    assert (disk[0] / "queues-ballast").stat().st_size == files.SIZE
    assert not new.exists()
