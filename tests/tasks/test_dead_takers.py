"""A process that has taken tasks, and is no more."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading

import inside
import psutil
import pytest
from programs import tasks as programs
from waiting import LIMIT, Background, blocked, until

from pressure_mp import NotOwner, NotTaken, TaskQueue
from pressure_mp.background import lease_thread
from pressure_mp.background.takers import Takers

#: Seconds: a lease that no test waits for the end of.
LONG = 3600


@pytest.fixture
def queue(server, name):
    queue = TaskQueue(name, url=server.url, ttr=LONG, lease=1)
    yield queue
    queue.delete()


@pytest.fixture
def leased(server, name):
    """The same, where whose process is dead is seen, or else nothing is for a long time."""
    queue = TaskQueue(name, url=server.url, ttr=LONG, lease=LONG)
    yield queue
    queue.delete()


def start(queue, *args, method="spawn"):
    process = multiprocessing.get_context(method).Process(
        target=programs.take_and_wait, args=(queue, *args)
    )
    process.start()
    return process


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tasks_of_a_killed_process_are_ready_at_once(method, leased, server):
    leased.put_many(range(3))
    process = start(leased, method=method)
    until(lambda: leased.stats().counts["T"] == 3)
    with server.client() as client:
        before = blocked(client)
        taker = Background(leased.take, 50)
        until(lambda: blocked(client) == before + 1)
    process.kill()
    process.join()
    task = taker.result()
    assert (task.data, task.deliveries) == (0, 2)
    assert task.error == "the process that had taken it ended"
    assert [task.data for task in leased.take_many(3)] == [1, 2]


def test_the_error_of_a_task_says_that_its_process_ended_also_after_the_lease_ran_out(
    queue, server
):
    queue.put(1)
    process = start(queue)
    until(lambda: queue.stats().counts["T"] == 1)
    process.kill()
    process.join()
    takers = f"__pressure__:mp:{{{queue.name}}}:presence"
    with server.client() as client:
        (owner,) = client.hkeys(takers)
        client.hset(takers, owner, 1)  # milliseconds since 1970
    assert queue.take(50).error == "the process that had taken it ended"


def test_a_process_that_ends_gives_back_its_tasks(queue):
    queue.put(1)
    process = start(queue, "end")
    process.join()
    assert queue.take(0).deliveries == 2


def test_a_stopped_process_loses_its_tasks_after_its_lease_and_is_told(queue):
    queue.put(1)
    reader, writer = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = start(queue, "ack when told", writer)
    until(lambda: queue.stats().counts["T"] == 1)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        task = queue.take(10)
        assert (task.data, task.deliveries) == (1, 2)
    finally:
        queue.put("told", tube="told")
        os.kill(process.pid, signal.SIGCONT)
    assert reader.recv() in (NotOwner.__name__, NotTaken.__name__)
    process.join()
    assert queue.peek(task.id).state == "T"
    task.ack()


def test_a_process_that_lives_keeps_its_tasks_beyond_its_lease(queue):
    queue.put(1)
    task = queue.take()
    process = start(queue, "look")
    process.join()
    task.ack()
    assert queue.stats().transitions == {"X-R": 1, "R-T": 1, "T-X": 1}


def test_after_a_server_restarts_a_taker_goes_on(name, tmp_path):
    from brokers.servers import Server

    server = Server("valkey", Server.durable)
    try:
        queue = TaskQueue(name, url=server.start().url)
        queue.put_many(range(20))
        tasks = queue.take_many(10)
        taker = Background(queue.take, 20, tube="a")
        before = queue.stats()
        server.kill()
        server.start()
        assert queue.stats().transitions == before.transitions
        queue.ack_many(tasks)
        queue.put(1, tube="a")
        assert taker.result().data == 1
        assert [task.data for task in queue.list("R")] == list(range(10, 20))
    finally:
        server.stop()


@pytest.mark.parametrize("what", ["", "tube"])
def test_many_that_are_stopped_as_they_wait_keep_no_task_from_a_live_one(leased, server, what):
    """Each of them is woken for a task; the live one looks by itself. With and without a tube."""
    tube = "nothing" if what else None
    with server.client() as client:
        idle = blocked(client)
        stopped = [start(leased, what) for _ in range(8)]
        until(lambda: blocked(client) == idle + len(stopped))
        for process in stopped:
            os.kill(process.pid, signal.SIGSTOP)
        for process in stopped:
            until(lambda process=process: psutil.Process(process.pid).status() == "stopped")
        taker = Background(leased.take, 50, tube=tube)
        until(lambda: blocked(client) >= idle + 1)
        tasks = [leased.put(number, tube=tube) for number in range(2)]
        assert taker.result().id == tasks[0]
        assert leased.take(50, tube=tube).id == tasks[1]
    for process in stopped:
        process.kill()
        process.join()


def test_the_thread_that_looks_holds_no_lock_while_it_asks_a_taker_what_it_has(queue, monkeypatch):
    """The thread that looks asks with no lock that a signal handler could want."""
    asked, has_something = threading.Event(), Takers.has_something.fget
    monkeypatch.setattr(
        Takers, "has_something", property(lambda takers: asked.set() or has_something(takers))
    )
    queue.put("task")
    with queue.take():
        takers = inside.presence(queue)
        with takers._guard:
            asked.clear()
            lease_thread._sooner.put(None)
            assert asked.wait(LIMIT)
            Background(takers.lease.keep).result()


def late_renewals(caplog, name):
    """What the log tells of them. Queues of earlier tests may have leases, too."""
    start = f"the lease of this process in queue '{name}' had run out for "
    return [one for one in caplog.messages if one.startswith(start)]


def test_a_handler_that_keeps_pythons_lock_for_longer_than_the_lease_is_told_to_the_log(
    server, name, caplog
):
    queue = TaskQueue.create(name, url=server.url, lease=0.2)
    queue.put(1)
    task = queue.take()
    ctypes.PyDLL(None).usleep(500_000)  # unlike a CDLL, a PyDLL does not let go of the lock
    until(lambda: late_renewals(caplog, name))
    (told,) = late_renewals(caplog, name)
    assert "had run out for 0." in told
    task.ack()  # of this host: it is seen that the process lives
    queue.delete()


def test_a_late_renewal_of_a_worker_without_a_task_is_not_told(server, name, caplog):
    queue, stop = TaskQueue.create(name, url=server.url, lease=0.2), threading.Event()
    running = Background(queue.run, print, stop=stop)
    until(queue.workers)
    lease = inside.presence(queue).lease
    ctypes.PyDLL(None).usleep(500_000)
    late = lease.looked
    until(lambda: lease.looked > late)
    stop.set()
    running.result()
    assert not late_renewals(caplog, name)
    queue.delete()


def test_a_lease_that_is_renewed_in_time_is_not_told(server, name, caplog, monkeypatch):
    queue = TaskQueue.create(name, url=server.url, lease=1)
    queue.put(1)
    task = queue.take()
    looks = []
    monkeypatch.setattr(Takers, "renew_and_return", noted(Takers.renew_and_return, looks))
    until(lambda: len(looks) > 8)
    assert not late_renewals(caplog, name)
    task.ack()
    queue.delete()


def noted(method, calls):
    def call(self, there):
        calls.append(there)
        return method(self, there)

    return call
