"""An anonymous queue whose items are in memory that the processes of this host share."""

from __future__ import annotations

import contextlib
import copy
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest
import redis
from in_memory import is_here
from programs import sharing, waiting_loops
from started import environment, quickly
from waiting import HOURS, LIMIT, Background, lasting, until

import pressure_mp
from pressure_mp import (
    AuthenticationError,
    BrokerUnavailable,
    DecodingError,
    Empty,
    Full,
    PressureQueue,
    Queue,
    ShutDown,
)
from pressure_mp.buffering import at_once, sender
from pressure_mp.engines.shared import header, linux, ring_files
from pressure_mp.engines.shared import items as shared_items
from pressure_mp.engines.shared import ring as rings
from pressure_mp.engines.shared.locks import BUSY
from pressure_mp.engines.shared.reading import Ring
from pressure_mp.identity import hand_outs, shared_folder
from pressure_mp.identity.client import process_prefix

pytestmark = [
    pytest.mark.skipif(not linux.EXISTS, reason="this system has no futex that is known"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
forking = multiprocessing.get_context("fork")


@pytest.fixture
def make(server):
    """Handles that are closed at the end, at a server that is there."""
    made = []

    def make(*args, **options):
        made.append(Queue(*args, url=server.url, **options))
        return made[-1]

    yield make
    for handle in made:
        with contextlib.suppress(ConnectionError, ValueError):
            handle.close()


def calls(server):
    with server.client() as client:
        return sum(
            seen["calls"]
            for command, seen in client.info("commandstats").items()
            if command != "cmdstat_info"
        )


@pytest.mark.parametrize("context", [forking, quickly], ids=["fork", "forkserver"])
def test_items_pass_between_processes_without_a_call_to_the_broker_for_each(
    own_server, start, context
):
    with Queue(url=own_server.url) as there, Queue(url=own_server.url) as back:
        start(sharing.double, there, back, context=context)
        there.put(0)
        assert back.get(timeout=LIMIT) == 0
        before = calls(own_server)
        for number in range(500):
            there.put(number)
            assert back.get(timeout=LIMIT) == 2 * number
        # Each process looks now and then whether others are still there.
        assert calls(own_server) - before < 250
        there.put(None)


def test_a_process_that_is_spawned_uses_the_same_memory(make, start):
    there, back = make(), make()
    start(sharing.double, there, back, context=multiprocessing.get_context("spawn"))
    there.put(21)
    assert back.get(timeout=LIMIT) == 42
    assert is_here(there)
    assert is_here(back)


@pytest.mark.parametrize(
    "options", [{"buffering": 0}, {"prefetch": 10}, {"eof": "producers"}, {"buffering": 100}]
)
def test_a_queue_with_an_option_of_how_items_are_sent_is_at_the_broker(make, options):
    assert not is_here(make(**options))


def test_a_queue_with_a_name_is_at_the_broker(make, name):
    assert not is_here(make(0, name))


def test_a_variable_switches_it_off(make, monkeypatch):
    monkeypatch.setenv("PRESSURE_SHARED_MEMORY", "0")
    queue = make()
    assert not is_here(queue)
    queue.put("item")
    assert queue.get(timeout=LIMIT) == "item"


def test_a_bound_is_never_exceeded(make, start):
    queue = make(4)
    for producer in range(3):
        start(sharing.put_numbers, queue, producer, 300)
    seen = defaultdict(list)
    for _ in range(900):
        assert queue.qsize() <= 4
        producer, count = queue.get(timeout=LIMIT)
        seen[producer].append(count)
    assert seen == {producer: list(range(300)) for producer in range(3)}
    assert queue.empty()
    assert is_here(queue)


@pytest.mark.parametrize("bound", [0, 4, 100])
def test_items_put_at_the_broker_are_there_before_later_items_in_memory(make, name, bound):
    """A consumer that sees an item in shared memory sees what its producer put elsewhere before."""
    elsewhere, queue = make(0, name, buffering=1000), make(bound)

    def put():
        for number in range(500):
            elsewhere.put(number)
            queue.put(number)

    putting = Background(put)
    with redis.Redis.from_url(queue.url) as client:
        for number in range(500):
            assert queue.get(timeout=LIMIT) == number
            assert client.llen(f"__pressure__:{name}") > number
    putting.result()
    assert is_here(queue)
    elsewhere.delete()


def test_a_full_queue_says_so_and_a_get_makes_room(make):
    queue = make(2)
    queue.put(1)
    queue.put_nowait(2)
    assert queue.full()
    with pytest.raises(Full):
        queue.put_nowait(3)
    with pytest.raises(Full):
        queue.put(3, timeout=0.05)
    waits = Background(queue.put, 3)
    assert queue.get() == 1
    waits.result()
    assert [queue.get(), queue.get()] == [2, 3]
    with pytest.raises(Empty):
        queue.get_nowait()
    with pytest.raises(Empty, match=r"still after 0\.05 s"):
        queue.get(timeout=0.05)
    assert is_here(queue)


@pytest.mark.parametrize("number", [1, 5])
def test_waiting_gets_are_woken_by_as_many_items(make, number, monkeypatch):
    monkeypatch.setattr(shared_items, "TICK", HOURS)
    queue = make()
    waiting = [Background(queue.get) for _ in range(number)]
    time.sleep(0.1)
    for item in range(number):
        queue.put(item)
    assert sorted(one.result() for one in waiting) == list(range(number))


def test_a_look_at_the_next_items_leaves_them_where_they_are(make):
    queue = make()
    for number in range(50):
        queue.put(number)
    queue.flush()
    assert [queue.get() for _ in range(20)] == list(range(20))
    assert queue.peek(3) == [20, 21, 22]
    assert is_here(queue)
    assert queue.get() == 20


def test_stats_count_the_items_in_memory_and_go_on_at_the_broker(make):
    queue = make()
    for number in range(10):
        queue.put(number)
    assert [queue.get() for _ in range(4)] == [0, 1, 2, 3]
    before = queue.stats()
    assert (before.length, before.produced_messages, before.consumed_messages) == (6, 10, 4)
    mine = process_prefix()
    assert before.producer.startswith(mine)
    assert before.consumer.startswith(mine)
    queue.task_done()
    assert is_here(queue)
    assert queue.rejected() == []
    assert not is_here(queue)
    after = queue.stats()
    assert (after.length, after.produced_messages, after.consumed_messages) == (6, 10, 4)
    assert after.unfinished == 9
    assert [queue.get() for _ in range(6)] == [4, 5, 6, 7, 8, 9]


def listed(queue):
    """The queue as it is in the list of all queues."""
    return next(one for one in pressure_mp.list_queues(url=queue.url) if one.name == queue.name)


def test_the_list_of_queues_counts_the_items_in_memory(make, start, server):
    queue, bounded = make(), pressure_mp.JoinableQueue(maxsize=3, url=server.url)
    for number in range(3):
        queue.put(number)
        bounded.put(number)
    queue.get()
    bounded.get()
    lister = (
        "import sys, pressure_mp\n"
        "for one in pressure_mp.list_queues(url=sys.argv[1]):\n"
        "    print(one.name, one.length, one.maxsize, one.produced, one.consumed, one.in_flight)"
    )
    other = subprocess.check_output([sys.executable, "-c", lister, server.url], text=True)
    for handle, counts in (queue, (2, 0, 3, 1, 0)), (bounded, (2, 3, 3, 1, 1)):
        assert is_here(handle)
        found = listed(handle)
        told = found.length, found.maxsize, found.produced, found.consumed, found.in_flight
        assert told == counts
        assert " ".join(map(str, (handle.name, *counts))) in other.splitlines()
    bounded.shutdown()
    assert listed(bounded).closed
    bounded.close()


def test_a_program_that_lists_queues_keeps_no_file_of_them(make):
    queue = make()
    queue.put(1)
    lister = (
        "import os, sys, pressure_mp\n"
        "assert [one.length for one in pressure_mp.list_queues(url=sys.argv[1])\n"
        "        if one.name == sys.argv[2]] == [1]\n"
        "print(open('/proc/self/maps').read().count('items,anonymous'))"
    )
    told = subprocess.check_output([sys.executable, "-c", lister, queue.url, queue.name], text=True)
    assert told == "0\n"


def test_a_shutdown_ends_gets_that_wait_in_memory(make, start):
    queue = make()
    waiting = [Background(queue.get) for _ in range(3)]
    read, write = forking.Pipe(duplex=False)
    other = start(_get_until_shut_down, queue, write)
    assert read.recv() == "waits"
    queue.shutdown()
    for one in waiting:
        with pytest.raises(ShutDown):
            one.result()
    assert read.recv() == "shut down"
    other.join(LIMIT)
    with pytest.raises(ShutDown):
        queue.put(1)


def _get_until_shut_down(queue, write):
    queue.qsize()
    write.send("waits")
    try:
        queue.get()
    except ShutDown:
        write.send("shut down")


def test_a_handle_that_is_sent_elsewhere_takes_the_items_to_the_broker_in_order(make):
    queue = make()
    for number in range(5):
        queue.put(number)
    assert queue.get() == 0
    elsewhere = pickle.loads(pickle.dumps(queue))
    assert not is_here(queue)
    assert [elsewhere.get(timeout=LIMIT) for _ in range(4)] == [1, 2, 3, 4]
    elsewhere.put("back")
    elsewhere.close()
    assert queue.get(timeout=LIMIT) == "back"


def test_a_copy_of_a_handle_is_a_handle_to_the_same_items(make):
    queue = make()
    queue.put("item")
    other = copy.copy(queue)
    assert other.get(timeout=LIMIT) == "item"
    queue.close()
    other.put("after the first handle was closed")
    assert other.get(timeout=LIMIT) == "after the first handle was closed"
    other.close()


def test_items_are_signed_when_they_leave_the_memory_and_only_then(make):
    queue = make()
    queue.put("item")
    queue.flush()
    assert queue._at.binding.items.ring.read(0, 1) == [pickle.dumps("item", 5)]
    queue._at.binding.move_to_broker()
    bare = PressureQueue(queue.name, url=queue._at.address._replace().url)
    assert bare.get().startswith(b"\xf9mp2")
    bare.put(pickle.dumps("forged"))
    with pytest.raises(AuthenticationError, match="is not signed"):
        queue.get(timeout=LIMIT)
    queue.put("signed")
    assert queue.get(timeout=LIMIT) == "signed"


def test_a_producer_far_ahead_of_its_consumer_stays_in_memory(make):
    queue = make()
    items = [bytes([number % 256]) * 100_000 for number in range(1500)]
    for item in items:
        queue.put(item)
    queue.flush()
    assert is_here(queue)
    assert [queue.get(timeout=LIMIT) for _ in items] == items
    assert is_here(queue)


def test_items_that_need_more_room_than_the_memory_has_go_to_the_broker_in_order(make, monkeypatch):
    monkeypatch.setattr(rings, "_UNITS", 1 << 20)
    queue = make()
    items = [bytes([number % 256]) * 100_000 for number in range(100)]
    for item in items:
        queue.put(item)
    queue.flush()
    assert not is_here(queue)
    assert [queue.get(timeout=LIMIT) for _ in items] == items


def test_an_item_whose_content_is_kept_apart_comes_in_its_turn(make):
    queue = make()
    large = os.urandom(1 << 20)
    queue.put("before")
    queue.put(large)
    queue.put("behind")
    assert [queue.get(timeout=LIMIT) for _ in range(3)] == ["before", large, "behind"]


def test_an_item_that_cannot_be_decoded_is_set_aside_and_the_others_stay(make):
    queue = make(lease=HOURS)
    for number in range(60):
        queue.put(Undecodable() if number == 40 else number)
    queue.flush()
    got = [queue.get(timeout=LIMIT) for _ in range(40)]
    with pytest.raises(DecodingError, match="Undecodable"):
        queue.get(timeout=LIMIT)
    got += [queue.get(timeout=LIMIT) for _ in range(19)]
    assert got == [number for number in range(60) if number != 40]
    assert is_here(queue)
    assert len(queue.rejected()) == 1
    queue.task_done()
    assert queue.unfinished_tasks == 58


class Undecodable:
    def __reduce__(self):
        return _refuse, ("Undecodable",)


def _refuse(what):
    raise ValueError(what)


@pytest.mark.parametrize("calls", [1, 2])
def test_a_move_that_is_killed_is_done_by_the_next_and_adds_nothing_twice(make, start, calls):
    queue = make()
    for number in range(1500):
        queue.put(number)
    queue.flush()
    dying = start(sharing.move_and_die, queue, calls)
    dying.join(LIMIT)
    assert dying.exitcode == -signal.SIGKILL
    assert [queue.get(timeout=LIMIT) for _ in range(1500)] == list(range(1500))
    assert queue.stats().produced_messages == 1500
    assert queue.empty()


def test_the_first_put_of_a_process_is_in_memory_when_it_returns(make, start):
    queue = make()
    dying = start(sharing.put_one_and_die, queue, "item")
    assert queue.get(timeout=LIMIT) == "item"
    dying.join(LIMIT)
    assert dying.exitcode == -signal.SIGKILL


def test_puts_between_gets_of_the_same_process_need_no_thread(make, monkeypatch):
    """However soon one put follows the other: a get would wait for the thread."""
    queue, lined_up, line_up = make(), [], sender.Sender.line_up
    queue.put(0)
    assert queue.get() == 0
    monkeypatch.setattr(at_once, "_SOON", HOURS)
    monkeypatch.setattr(
        sender.Sender, "line_up", lambda *which: lined_up.append(which) or line_up(*which)
    )
    for number in range(50):
        queue.put(number)
        assert queue.get() == number
    assert lined_up == []
    for number in range(50):
        queue.put(number)
    assert lined_up != []
    assert [queue.get() for _ in range(50)] == list(range(50))


def test_the_locks_of_a_killed_process_are_released(make, start):
    queue = make()
    queue.put(1)
    dying = start(sharing.hold_the_lock_and_die, queue)
    dying.join(LIMIT)
    assert queue.get(timeout=LIMIT) == 1


def test_a_process_stopped_with_the_locks_keeps_no_call_longer_than_its_time_limit(make, start):
    queue = make()
    read, write = forking.Pipe(duplex=False)
    holder = start(sharing.hold_the_locks, queue, write)
    assert read.recv() == "has them"
    os.kill(holder.pid, signal.SIGSTOP)
    with pytest.raises(Empty):
        Background(queue.get, timeout=0.2).result()
    waits = Background(queue.get)
    queue.put(1)  # a thread waits for the lock
    waits.join(0.3)
    assert waits.is_alive()
    os.kill(holder.pid, signal.SIGCONT)
    assert waits.result() == 1


def test_without_the_broker_items_go_on_between_processes(own_server, start):
    with Queue(url=own_server.url, reconnect=0.2) as there, Queue(url=own_server.url) as back:
        start(sharing.double, there, back)
        there.put(1)
        assert back.get(timeout=LIMIT) == 2
        own_server.kill()
        for number in range(100):
            there.put(number)
            assert back.get(timeout=LIMIT) == 2 * number
        there.put("stays")
        with pytest.raises(BrokerUnavailable):
            there.rejected()
        own_server.start()


@pytest.mark.parametrize(
    "program", [sharing.get_and_tell, waiting_loops.get_and_write], ids=["threads", "asyncio"]
)
def test_killed_consumers_lose_at_most_the_item_that_was_on_its_way(make, start, program):
    queue, number = make(), 4000
    read, write = os.pipe()
    producers = [start(sharing.put_numbers, queue, at, number) for at in range(2)]
    lines, kills = _Lines(read), 0
    consumer = start(program, queue, write)
    while any(one.is_alive() for one in producers) or not queue.empty():
        lines.read_for(0.03)
        if kills < 25:
            consumer.kill()
            consumer.join()
            kills += 1
            consumer = start(program, queue, write)
    until(queue.empty)
    lines.read_for(0.5)
    consumer.kill()
    got = [tuple(map(int, line.split())) for line in lines.all]
    assert len(set(got)) == len(got)
    assert 2 * number - kills - 1 <= len(got) <= 2 * number
    for producer in range(2):
        mine = [count for one, count in got if one == producer]
        assert mine == sorted(mine)


class _Lines:
    def __init__(self, read):
        self._read, self.all, self._rest = read, [], b""
        os.set_blocking(read, False)

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = self._rest + os.read(self._read, 1 << 16)
            except BlockingIOError:
                time.sleep(0.001)
                continue
            *lines, self._rest = found.split(b"\n")
            self.all += lines


def _begin_to_read(queue, start, number):
    """Put so many numbers; a process that gets them, and both ends of where it tells of each."""
    for item in range(number):
        queue.put(item)
    queue.flush()
    pipe = forking.Pipe(duplex=False)
    return start(sharing.get_one_and_stay, queue, pipe[1]), pipe


def test_no_consumer_gets_again_items_that_a_killed_reader_had_handed_out(make, start):
    queue = make()
    consumer, (read, _write) = _begin_to_read(queue, start, 200)
    had = [read.recv() for _ in range(100)]
    consumer.kill()
    consumer.join()
    while read.poll():
        had.append(read.recv())
    rest = [queue.get(timeout=LIMIT) for _ in range(queue.qsize())]
    assert sorted(had + rest)[:10] == list(range(10))
    assert len(set(had + rest)) == len(had + rest)
    assert 199 <= len(had + rest) <= 200


def test_a_process_that_cannot_see_now_what_a_dead_one_handed_out_looks_again(
    make, start, monkeypatch
):
    queue = make()
    consumer, (read, _write) = _begin_to_read(queue, start, 20_000)
    assert [read.recv() for _ in range(100)] == list(range(100))
    os.kill(consumer.pid, signal.SIGSTOP)
    while not queue._at.binding.items.ring.is_reserved:
        os.kill(consumer.pid, signal.SIGCONT)
        os.kill(consumer.pid, signal.SIGSTOP)
    consumer.kill()
    consumer.join()

    def refuse(reader):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(hand_outs, "read", refuse)
        assert 0 < queue.qsize() <= 20_000
        with pytest.raises(Empty):
            queue.get_nowait()
    reader = queue._at.binding.items.ring.last_reading.reader
    assert f"/{consumer.pid}/" in reader
    assert hand_outs.read(reader) is not None
    assert queue.get(timeout=LIMIT) >= 100
    assert hand_outs.read(reader) is None


def test_a_consumer_stopped_while_it_read_ahead_hands_out_no_item_that_others_got(make, start):
    queue = make(lease=0.5)
    read, write = forking.Pipe(duplex=False)
    consumer = start(sharing.get_one_and_stay, queue, write)
    for item in range(20_000):
        queue.put(item)
    queue.flush()
    had = [read.recv() for _ in range(200)]
    _stop_outside_of_the_locks(consumer, queue)
    rest = [queue.get(timeout=LIMIT) for _ in range(300)]
    os.kill(consumer.pid, signal.SIGCONT)
    queue.put(None)
    while (item := read.recv()) is not None:
        had.append(item)
    while (left := _get_or_none(queue)) is not None:
        rest.append(left)
    assert sorted(had + rest) == list(range(20_000))


def _stop_outside_of_the_locks(process, queue):
    ring = queue._at.binding.items.ring
    os.kill(process.pid, signal.SIGSTOP)
    while ring.taking.run(lambda: None, time.monotonic() + 0.5) is BUSY:
        os.kill(process.pid, signal.SIGCONT)
        os.kill(process.pid, signal.SIGSTOP)


def _get_or_none(queue):
    try:
        return queue.get(timeout=0.2)
    except Empty:
        return None


def test_a_process_that_cannot_see_the_memory_is_told(make, tmp_path, monkeypatch):
    queue = make()
    queue.put(1)
    with monkeypatch.context() as patched:
        patched.setattr("pressure_mp.handles.attachment.is_spawning", lambda: True)
        state = queue.__getstate__()
    # As in a container that has a /dev/shm of its own.
    monkeypatch.setattr(shared_folder, "find", lambda make=False: str(tmp_path))
    monkeypatch.setattr(ring_files, "_rings", {})
    handle = Queue.__new__(Queue)
    handle.__setstate__(state)
    with pytest.raises(pressure_mp.BrokerError, match="this process cannot see them"):
        handle.get(timeout=1)


def check_alone(program, server):
    """Run a program of ``sharing`` in a process of its own."""
    command = [sys.executable, sharing.__file__, program, server.url]
    found = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=LIMIT
    )
    assert found.returncode == 0, found.stderr


def test_where_a_file_cannot_be_so_large_the_broker_has_the_items(server):
    check_alone("run_with_limit", server)


def test_a_queue_that_was_made_without_a_free_descriptor_is_at_the_broker(server):
    check_alone("make_without_descriptors", server)


def test_more_queues_than_files_may_be_open_for_are_at_the_broker(server, monkeypatch):
    monkeypatch.setattr(ring_files, "_SHARE", 1 << 30)
    with Queue(url=server.url) as queue:
        assert not is_here(queue)
        queue.put(1)
        assert queue.get(timeout=LIMIT) == 1


def test_the_file_goes_with_the_last_handle(make):
    queue = make()
    path = Path(queue._at.binding.items.ring.path)
    queue.put(1)
    assert path.exists()
    queue.close()
    assert not path.exists()


def test_the_file_of_processes_that_were_killed_goes_with_the_next_program(own_server):
    program = (
        "import os, signal, pressure_mp\n"
        f"q = pressure_mp.Queue(url={own_server.url!r}); q.put(1)\n"
        "print(q._at.binding.items.ring.path, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = [sys.executable, "-c", program]
    killed = subprocess.run(run, env=environment(), capture_output=True, text=True, timeout=LIMIT)
    path = Path(killed.stdout.strip())
    assert path.exists()
    next_one = f"import pressure_mp; pressure_mp.Queue(url={own_server.url!r}).close()"
    subprocess.run([sys.executable, "-c", next_one], env=environment(), check=True, timeout=LIMIT)
    assert not path.exists()


@pytest.mark.parametrize("step", ["posix_fallocate", "ftruncate"])
def test_a_process_that_is_killed_while_it_makes_the_file_keeps_no_other_out(own_server, step):
    """The file is there, and smaller than it is to be; the queue is at the broker."""
    program = (
        "import os, signal, pressure_mp\n"
        f"os.{step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"pressure_mp.Queue(url={own_server.url!r})"
    )
    killed = subprocess.run([sys.executable, "-c", program], env=environment(), timeout=LIMIT)
    assert killed.returncode == -signal.SIGKILL
    client = redis.Redis(port=own_server.port)
    (queue,) = {key.split(b":")[1] for key in lasting(client, "*:{anonymous-*")}
    path = Path(shared_folder.find()) / f"items,{queue.decode().strip('{}')}"
    assert path.exists()
    next_one = f"import pressure_mp; pressure_mp.Queue(url={own_server.url!r}).close()"
    subprocess.run([sys.executable, "-c", next_one], env=environment(), check=True, timeout=LIMIT)
    assert not path.exists()
    assert not {*lasting(client, "*:{anonymous-*")}


def test_an_interrupt_while_the_file_is_made_leaves_no_queue(own_server, monkeypatch):
    def interrupted(*arguments):
        """As a signal handler's exception that comes when the file is open."""
        os.close(opened(*arguments))
        raise KeyboardInterrupt

    opened = os.open
    monkeypatch.setattr(header.os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Queue(url=own_server.url)
    monkeypatch.undo()
    client = redis.Redis(port=own_server.port)
    gc.collect()
    until(lambda: not {*lasting(client, "*:{anonymous-*")})


def test_old_files_that_no_process_uses_are_removed(make, monkeypatch, tmp_path):
    used, unused = tmp_path / "items,used", tmp_path / "items,unused"
    Ring(str(unused), 0)
    kept = Ring(str(used), 0)
    for path in (used, unused):
        os.utime(path, (0, 0))
    seen = subprocess.run(
        [sys.executable, "-c", _SWEEP.format(folder=str(tmp_path))],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert seen.returncode == 0, seen.stderr
    assert used.exists()
    assert not unused.exists()
    del kept


_SWEEP = """
from pressure_mp.engines.shared import ring_files
from pressure_mp.identity import shared_folder
shared_folder.sweep({folder!r}, 60, ring_files._remove)
"""


def test_threads_of_many_processes_lose_nothing(make, start):
    queue, back = make(), make()
    for _ in range(2):
        start(_double_in_threads, queue, back)
    for number in range(600):
        queue.put(number)
    assert sorted(back.get(timeout=LIMIT) for _ in range(600)) == [2 * n for n in range(600)]
    for _ in range(4):
        queue.put(None)


def _double_in_threads(there, back):
    threads = [threading.Thread(target=sharing.double, args=(there, back)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_task_of_asyncio_gets_what_was_put_in_memory(make):
    import asyncio

    from pressure_mp import aio

    queue = make()
    queue.put("item")

    async def get():
        other = aio.PressureQueue(queue.name, url=queue._at.address.url)
        return await other.get()

    assert b"item" in asyncio.run(get())
    assert is_here(queue)


@pytest.mark.parametrize("maxsize", [0, 8])
def test_a_closed_handle_puts_nothing_while_others_use_the_queue(make, start, maxsize):
    queue = make(maxsize)
    queue.put(1)
    read, write = forking.Pipe(duplex=False)
    start(sharing.get_one_and_stay, queue, write)
    assert read.recv() == 1
    queue.close()
    with pytest.raises(ValueError, match="is closed"):
        queue.put(2)
    assert not read.poll(0.3)


def test_a_handle_that_is_sent_on_before_it_was_used_takes_the_items_along(make, monkeypatch):
    queue = make()
    queue.put("item")
    with monkeypatch.context() as patched:
        patched.setattr("pressure_mp.handles.attachment.is_spawning", lambda: True)
        state = queue.__getstate__()
    started = Queue.__new__(Queue)
    started.__setstate__(state)  # as in a process that was started with it
    elsewhere = pickle.loads(pickle.dumps(started))
    assert not is_here(queue)
    assert elsewhere.get(timeout=LIMIT) == "item"
    elsewhere.close()
    started.close()
