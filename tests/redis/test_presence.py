"""Items in flight of real processes that end, die, stop, fork, or keep the interpreter busy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import inside
import psutil
import pytest
from programs import deliveries as programs
from waiting import HOURS, LIMIT, Background, lasting, until

import pressure_mp
from pressure_mp import Empty, JoinableQueue
from pressure_mp.background import lease
from pressure_mp.drivers import drive
from pressure_mp.engines.contract.session import Options
from pressure_mp.identity import processes
from pressure_mp.operations.deliveries import DeliveryOperations

METHODS = ["fork", "spawn"]
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def make(valkey, name):
    made = []

    def make(kind=JoinableQueue, **options):
        options.setdefault("lease", HOURS)  # what waits for its end does not end
        made.append(kind(0, name, url=valkey.url, **options))
        return made[-1]

    yield make
    made[0].delete()
    with valkey.client() as client:
        assert lasting(client, f"*{name}*") == []


def fill(q, *items):
    for item in items:
        q.put(item)


def timed(call, *args, **kwargs):
    """What a call returns, and how many seconds it took."""
    begin = time.monotonic()
    return call(*args, **kwargs), time.monotonic() - begin


def elsewhere(q, operation, *args, **kwargs):
    """An operation of a process on another host."""
    binding = inside.bind(q)
    operations = DeliveryOperations(q.name, "fifo")
    return drive(getattr(operations, operation)(*args, **kwargs), binding.session())


STRANGER = "another-host/1/1/aaaaaaaa"


def test_threads_that_are_the_first_at_the_same_time_are_one_process(monkeypatch):
    both, draw = threading.Barrier(2), processes.os.urandom
    monkeypatch.setattr(processes, "_once", {"mark": processes.mark()})
    monkeypatch.setattr(processes.os, "urandom", lambda size: (both.wait(10), draw(size))[1])
    threads = [Background(processes.incarnation) for _ in range(2)]
    one, other = (thread.result() for thread in threads)
    assert one == other


# A process ends


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("act", ["return", "raise"])
def test_a_process_that_ends_gives_back_what_it_had_before_it_is_gone(make, start, method, act):
    q = make()
    fill(q, 1, 2, 3, 4)
    process, pipe = start(programs.get_and_act, q, 3, act, method=method)
    assert pipe.recv() == [1, 2, 3]
    process.join()
    assert q.stats().in_flight == 0
    assert [q.get_nowait() for _ in range(4)] == [1, 2, 3, 4]
    for _ in range(4):
        q.task_done()
    q.join()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("act", ["exit", "kill"])
def test_a_waiting_get_gets_the_items_of_a_dead_process_within_a_second(make, start, method, act):
    q = make()
    fill(q, 1, 2, 3)
    process, pipe = start(programs.get_and_act, q, 3, act, method=method)
    assert pipe.recv() == [1, 2, 3]
    item = q.get()
    assert item == 1
    assert [q.get_nowait(), q.get_nowait()] == [2, 3]
    process.join()
    for _ in range(3):
        q.task_done()
    q.join()


def test_polling_gets_the_item_of_a_dead_process_within_a_second(make, start):
    q = make()
    q.put(1)
    process, pipe = start(programs.get_and_act, q, 1, "kill")
    assert pipe.recv() == [1]
    process.join()

    def poll():
        try:
            return q.get_nowait()
        except Empty:
            return None

    item = until(poll)
    assert item == 1
    q.task_done()


def test_a_join_sees_to_it_that_poison_is_set_aside(make, start):
    q = make(max_deliveries=2)
    q.put("poison")
    for _ in range(2):
        process, pipe = start(programs.get_and_act, q, 1, "kill")
        assert pipe.recv() == ["poison"]
        process.join()
    q.join()
    assert (q.stats().rejected, q.unfinished_tasks) == (1, 0)


def test_acknowledged_items_of_a_killed_process_do_not_come_back(make, start):
    q = make()
    fill(q, *range(10))
    worker, pipe = start(programs.work, q)
    q.join()
    assert [pipe.recv() for _ in range(10)] == list(range(10))
    worker.kill()
    worker.join()
    with pytest.raises(Empty):
        q.get(timeout=1.2)


def test_workers_that_are_killed_lose_nothing(make, start):
    q = make()
    seen = []

    def follow(pipe, until_sent=None):
        """What a worker says that it got, as far as it was able to say it."""
        try:
            while len(seen) != until_sent:
                seen.append(pipe.recv())
        except EOFError:
            pass

    for first in range(0, 200, 40):
        fill(q, *range(first, first + 40))  # a worker may be far ahead of what it is seen to do
        worker, pipe = start(programs.work, q)
        follow(pipe, len(seen) + 20)
        worker.kill()
        follow(pipe)
    worker, pipe = start(programs.work, q)
    q.join()
    q.shutdown()
    follow(pipe)
    assert sorted(set(seen)) == list(range(200))
    assert len(seen) <= 200 + 5


# A process does not end


def test_a_closed_handle_keeps_its_items_as_long_as_its_process_lives(make, start):
    q = make()
    q.put(1)
    process, pipe = start(programs.get_and_act, q, 1, "close")
    assert pipe.recv() == [1]
    with pytest.raises(Empty):
        q.get(timeout=1.2)
    pipe.send("end")
    process.join()
    assert q.get_nowait() == 1
    q.task_done()


def test_a_stopped_process_loses_its_items_after_its_lease_and_harms_nothing_later(make, start):
    q = make(lease=1.0)
    q.put("a")
    process, pipe = start(programs.get_late, q)
    assert pipe.recv() == "a"
    os.kill(process.pid, signal.SIGSTOP)
    assert q.get(timeout=LIMIT) == "a"
    os.kill(process.pid, signal.SIGCONT)
    pipe.send("now")
    assert pipe.recv() == ["LateTaskDoneWarning"]
    assert (q.unfinished_tasks, q.stats().in_flight) == (1, 1)
    q.task_done()
    q.join()


def test_a_process_that_was_stopped_for_less_than_its_lease_keeps_its_items(make, start):
    q = make(lease=30.0)
    q.put("a")
    process, pipe = start(programs.get_late, q)
    assert pipe.recv() == "a"
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(Empty):
        q.get(timeout=1.2)
    os.kill(process.pid, signal.SIGCONT)
    pipe.send("now")
    assert pipe.recv() == []
    q.join()


def test_a_process_that_keeps_the_interpreter_busy_keeps_its_items(make, start):
    q = make(lease=0.3)
    q.put("a")
    process, pipe = start(programs.get_and_hold_the_interpreter, q)
    assert pipe.recv() == "a"

    def its_lease_has_run_out():
        there = elsewhere(q, "renew", STRANGER, False, False)
        return there.now > max(there.consumers.values())

    until(its_lease_has_run_out)
    with pytest.raises(Empty):
        q.get(timeout=1.2)
    pipe.send("let go")
    assert pipe.recv() == "done"
    q.join()
    process.join()


def test_a_busy_consumer_renews_its_lease(make, start):
    q = make(lease=0.5)
    q.put("a")
    _, pipe = start(programs.get_late, q)
    assert pipe.recv() == "a"
    (owner,) = elsewhere(q, "renew", STRANGER, False, False).consumers

    def lease_ends():
        return elsewhere(q, "renew", STRANGER, False, False).consumers[owner]

    first = lease_ends()
    until(lambda: lease_ends() > first + 1000)  # it is renewed, and not only once
    pipe.send("now")
    assert pipe.recv() == []
    q.join()


def test_a_process_of_another_host_loses_its_items_after_its_lease(make):
    q = make(lease=1.0)
    q.put("a")
    elsewhere(q, "take_many", STRANGER, 1, 0, 1, False, None)
    item, took = timed(q.get, timeout=LIMIT)
    assert item == "a"
    assert took > 0.9
    q.task_done()


def test_a_process_of_another_host_that_renews_keeps_its_items(make):
    q = make()
    q.put("a")

    def renew(seconds):
        operations = DeliveryOperations(q.name, "fifo")
        options = Options(lease=int(seconds * 1000))
        binding = inside.bind(q, options)
        return drive(operations.renew(STRANGER, True, False), binding.session())

    elsewhere(q, "take_many", STRANGER, 1, 0, 1, False, None)
    ends = renew(0.5).now + 500
    renew(HOURS)
    getting = Background(q.get)
    until(lambda: elsewhere(q, "renew", "another-host/2/2/bbbbbbbb", False, False).now > ends)
    with pytest.raises(Empty):
        q.get(timeout=1.2)
    assert q.stats().in_flight == 1
    renew(0.001)
    assert getting.result() == "a"
    q.task_done()


# Forks, threads, lost answers


def test_a_forked_child_has_nothing_in_flight_and_loses_nothing_of_its_parents(make, start):
    q = make()
    fill(q, "parent's", "child's")
    process, pipe = start(programs.get_and_fork, q)
    assert pipe.recv() == "parent's"
    assert pipe.recv() == "child's"
    assert q.stats().in_flight == 2
    pipe.send("go on")
    child = pipe.recv()
    assert (q.unfinished_tasks, q.stats().in_flight) == (1, 1)
    os.kill(child, signal.SIGKILL)
    item = q.get()
    assert item == "child's"
    process.join()
    q.task_done()
    q.join()


def test_the_thread_in_the_background_ends_by_itself(make, start):
    q = make()
    q.put(1)
    process, pipe = start(programs.threads_of, q)
    assert pipe.recv() == "it has ended"
    pipe.send("end")
    process.join()
    assert process.exitcode == 0


def test_an_item_whose_answer_was_lost_comes_back(make, monkeypatch):
    q = make(lease=1.0)
    q.put("a")
    run = q._at.run_on

    def lose_the_answer(session, operation, guard):
        run(session, operation, guard)
        raise pressure_mp.BrokerUnavailable("the connection broke")

    with monkeypatch.context() as patched:
        patched.setattr(q._at, "run_on", lose_the_answer)
        with pytest.raises(pressure_mp.BrokerUnavailable):
            q.get()
    assert q.stats().in_flight == 1
    assert q.get(timeout=LIMIT) == "a"
    q.task_done()
    q.join()


# The end of a program

PROGRAM = """
import pressure_mp, sys, threading
q = pressure_mp.JoinableQueue(name=sys.argv[1], url=sys.argv[2])
for _ in range(4): q.put("x")
q.get()
q.task_done()
q.get()
other = pressure_mp.JoinableQueue(name=sys.argv[1] + "-other", url=sys.argv[2])
threading.Thread(target=other.get, daemon=True).start()
{end}
"""


@pytest.mark.parametrize("end", ["", "import os; os.fork()", "sys.exit(0)"])
def test_a_program_ends_at_once_and_prints_nothing(make, end, name, valkey):
    q = make()
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(end=end), name, valkey.url],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    JoinableQueue.attach(f"{name}-other", url=valkey.url).delete()
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert (q.qsize(), q.stats().in_flight) == (3, 0)


def test_an_anonymous_queue_with_items_in_flight_leaves_no_key(valkey, name):
    environ = {**os.environ, "PRESSURE_URL": valkey.url, "PRESSURE_PREFIX": name}
    code = "import pressure_mp as p; q = p.JoinableQueue(eof='producers'); q.put(1); q.get()"
    subprocess.run([sys.executable, "-c", code], check=True, env=environ)
    with valkey.client() as client:
        assert lasting(client, f"{name}*") == []


def crowd(q, size):
    """Many processes of this host that are there, and one that is about not to be."""
    ending = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = f"{processes.host()}/{ending.pid}/{processes._see(ending.pid).start}/00000000"
    for number in range(size):
        elsewhere(q, "renew", f"{processes.user()}/{number:08x}", True, False)
    q.put("x")
    elsewhere(q, "take_many", name, 1, 0, 1, False, None)
    return ending


def test_of_many_processes_each_look_finds_one_that_is_gone(make, monkeypatch, no_looks):
    q = make(lease=60)
    q.open()
    ending = crowd(q, 100)
    ending.communicate()
    looked_at = []
    seen = lease.state
    monkeypatch.setattr(lease, "state", lambda other: looked_at.append(other) or seen(other))
    q._at.here.lease.look()
    assert q.qsize() == 1
    assert len(looked_at) <= 33


def test_of_many_processes_one_that_its_parent_has_not_waited_for_is_found_in_turn(make):
    q = make(lease=60)
    q.open()
    ending = crowd(q, 100)
    ending.stdin.close()
    until(lambda: psutil.Process(ending.pid).status() == psutil.STATUS_ZOMBIE)
    for _ in range(4):  # 32 at a time
        q._at.here.lease.look()
    assert q.qsize() == 1
    ending.wait()


def test_a_silent_broker_does_not_keep_this_process_from_its_leases_at_others(
    make, own_server, name
):
    silent = JoinableQueue(0, name, url=own_server.url, lease=HOURS)
    live = make(lease=2)
    for q in (silent, live):
        fill(q, "in flight")
        assert q.get() == "in flight"

    def lease_ends():
        return elsewhere(live, "renew", STRANGER, False, False).consumers[processes.incarnation()]

    before = lease_ends()
    own_server.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: lease_ends() > before + 6000)
    finally:
        own_server.process.send_signal(signal.SIGCONT)
    for q in (silent, live):
        q.task_done()
