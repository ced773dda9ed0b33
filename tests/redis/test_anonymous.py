"""Anonymous queues live as long as the processes that use them, and leave no key behind."""

from __future__ import annotations

import _thread
import asyncio
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import inside
import pytest
from brokers.servers import Server
from oracle import loops
from programs import lifetimes as programs
from waiting import HOURS, LIMIT, Background, lasting, until

import pressure_mp
from pressure_mp import BrokerUnavailable, Queue, aio
from pressure_mp.background import lifetimes
from pressure_mp.identity import processes

METHODS = ["fork", "spawn", "forkserver"]
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def broker(valkey, name, monkeypatch):
    """A prefix of the test's own; ``broker.left()`` are the keys that are left under it.

    Programs of their own are not of this process tree: the environment has the key they share.
    """
    monkeypatch.setenv("PRESSURE_URL", valkey.url)
    monkeypatch.setenv("PRESSURE_AUTHKEY", name)
    monkeypatch.setenv("PRESSURE_PREFIX", name)

    class Broker:
        url = valkey.url
        prefix = name
        client = valkey.client()

        def left(self):
            return lasting(self.client, f"{name}*")

    yield Broker()
    Broker.client.close()


def run(code, **options):
    """A program of its own, to its end."""
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, **options
    )


def start(code):
    """A program of its own, as far as its first line: a handle that it pickled."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, pickle.loads(bytes.fromhex(process.stdout.readline()))


def end(process):
    process.communicate(timeout=LIMIT)


USE_AND_WAIT = """
import pickle, pressure_mp, sys
q = pressure_mp.Queue()
q.put(1)
q.flush()
print(pickle.dumps(q).hex(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("method", METHODS)
def test_a_child_process_shares_the_queue_of_its_parent(broker, method):
    context = multiprocessing.get_context(method)
    inbox, outbox = Queue(), Queue(2)
    child = context.Process(target=programs.echo, args=(inbox, outbox))
    child.start()
    inbox.put("hello")
    assert outbox.get(timeout=20) == (child.pid, "hello")
    inbox.put(None)
    child.join()
    assert child.exitcode == 0


def test_a_program_that_ends_leaves_no_key(broker):
    run(
        "import pressure_mp\n"
        "q = pressure_mp.Queue(3); q.put(1); q.put(2); q.get()\n"
        "p = pressure_mp.SimpleQueue(); p.put(1)\n"
    )
    assert broker.left() == []


@pytest.mark.parametrize("method", METHODS)
def test_a_program_with_children_leaves_no_key(broker, method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"""
import multiprocessing, pressure_mp

def child(q):
    q.put("child")

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    q = pressure_mp.Queue()
    children = [context.Process(target=child, args=(q,)) for _ in range(3)]
    for c in children: c.start()
    q.close()  # this process is done with it; the children are not
    for c in children: c.join()
    assert [c.exitcode for c in children] == [0, 0, 0]
""")
    subprocess.run([sys.executable, program], check=True)
    assert broker.left() == []


def test_a_queue_goes_when_its_last_handle_is_closed(broker):
    q = Queue()
    q.put(1)
    q.close()
    assert broker.left() == []


def test_a_queue_whose_handle_is_garbage_goes_by_itself(broker):
    q = Queue()
    name = q.name.encode()
    q.put(1)
    q.flush()
    other = Queue()
    del q
    gc.collect()
    until(lambda: not any(name in key for key in broker.left()))
    other.put("still here")
    assert other.get() == "still here"
    other.close()
    assert broker.left() == []


def test_a_thousand_queues_that_are_dropped_go_together_and_the_thread_that_clears_up_ends(broker):
    # Threads that send or clear up for earlier tests end first.
    until(lambda: not any("redis://" in thread.name for thread in threading.enumerate()))
    until(lambda: not lifetimes._is_clearing)
    before = _thread._count()
    queues = [Queue() for _ in range(1000)]
    assert _thread._count() == before
    assert len(broker.left()) > 1000
    queues.clear()
    gc.collect()
    until(lambda: broker.left() == [], 30)
    until(lambda: _thread._count() == before)


def test_queues_are_dropped_while_other_threads_keep_the_lock_of_the_interpreter(broker):
    is_over = threading.Event()

    def compute():
        while not is_over.is_set():
            sum(range(1000))

    queues = [Queue() for _ in range(100)]
    computing = [Background(compute) for _ in range(4)]
    queues.clear()
    gc.collect()
    until(lambda: not lifetimes._is_clearing)
    is_over.set()
    for one in computing:
        one.result()
    assert broker.left() == []


def test_queues_may_be_dropped_while_any_lock_is_held(broker):
    first, second, third, fourth = (Queue() for _ in range(4))
    with threading._active_limbo_lock:  # threading's own, without which it starts no thread
        del first
    with lifetimes._lock:
        del second
        with lifetimes._clearing:
            del third

    def in_a_signal_handler(number, frame):
        nonlocal fourth
        del fourth

    before = signal.signal(signal.SIGUSR1, in_a_signal_handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    gc.collect()
    until(lambda: broker.left() == [])


def test_a_queue_that_was_dropped_just_before_a_fork_goes(broker):
    q = Queue()
    del q
    gc.collect()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    until(lambda: broker.left() == [])


def test_a_program_that_ends_just_after_it_dropped_its_queues_leaves_no_key(broker):
    run("import pressure_mp\nqueues = [pressure_mp.Queue() for _ in range(200)]\nqueues.clear()\n")
    assert broker.left() == []


@pytest.mark.parametrize("before", ["", "import multiprocessing.connection\n"])
def test_replies_kept_for_the_repeat_of_a_call_go_with_the_program(broker, before):
    run(f"{before}import pressure_mp\nq = pressure_mp.Queue(buffering=0)\nq.put(1)\nq.get()\n")
    assert list(broker.client.scan_iter(match=f"{broker.prefix}*")) == []


def test_a_queue_that_was_dropped_while_its_broker_was_away_goes_with_the_next(own_server, name):
    q = Queue(url=own_server.url, prefix=name, reconnect=0)
    own_server.process.send_signal(signal.SIGSTOP)
    try:
        del q
        gc.collect()
        until(lambda: lifetimes._overdue, 20)
    finally:
        own_server.process.send_signal(signal.SIGCONT)
    another = Queue(url=own_server.url, prefix=name)
    del another
    gc.collect()
    with own_server.client() as client:
        until(lambda: lasting(client, f"{name}*") == [])


def test_a_broker_that_answers_too_late_once_is_asked_again_at_once(broker, monkeypatch):
    """Nothing else may be dropped for long."""
    dismiss, asked = lifetimes._dismiss_at_once, []

    def late_once(engine, uses, options):
        asked.append(len(uses))
        if len(asked) == 1:
            raise BrokerUnavailable("no answer in time")
        dismiss(engine, uses, options)

    monkeypatch.setattr(lifetimes, "_dismiss_at_once", late_once)
    queues = [Queue() for _ in range(3)]
    queues.clear()
    gc.collect()
    until(lambda: broker.left() == [])
    assert asked == [3, 3]


def test_a_queue_lives_as_long_as_one_of_its_users(broker):
    process, q = start(USE_AND_WAIT)
    q.put(2)
    end(process)
    assert [q.get(), q.get()] == [1, 2]
    q.close()
    assert broker.left() == []


def test_the_survivors_clear_up_after_a_killed_process(broker):
    process, q = start(USE_AND_WAIT)
    q.put(2)
    process.kill()
    process.communicate()
    assert [q.get(), q.get()] == [1, 2]
    q.close()
    assert broker.left() == []


def test_the_next_program_on_the_host_clears_up_after_a_killed_one(broker):
    process, q = start(USE_AND_WAIT)
    process.kill()
    process.communicate()
    assert any(q.name.encode() in key for key in broker.left())
    run("import pressure_mp; pressure_mp.Queue.create('named').delete()")
    assert broker.left() == []


def test_a_killed_child_does_not_take_the_queue_along(broker):
    q = Queue()
    child = multiprocessing.get_context("spawn").Process(target=programs.kill_oneself, args=(q,))
    child.start()
    assert q.get() == "used"
    child.join()
    assert child.exitcode == -signal.SIGKILL
    run("import pressure_mp; pressure_mp.Queue.create('named').delete()")
    q.put("still here")
    assert q.get() == "still here"


def test_the_queue_of_a_live_process_is_never_cleared(broker):
    process, q = start(USE_AND_WAIT)
    run("import pressure_mp; pressure_mp.Queue().close()")
    assert q.get() == 1
    q.close()
    end(process)


def test_a_user_on_another_host_keeps_the_queue(broker):
    process, q = start(USE_AND_WAIT)
    inside.run(q, inside.operations(q).enlist("otherhost-0123456789ab/1/1"))
    end(process)
    q.close()
    run("import pressure_mp; pressure_mp.Queue().close()")
    again = pickle.loads(pickle.dumps(q))
    assert again.get() == 1
    assert inside.run(again, inside.operations(again).dismiss(["otherhost-0123456789ab/1/1"])) == 1
    again.close()
    assert again.exists() is False


def test_a_pid_that_is_used_again_is_not_taken_for_the_dead_user(broker):
    q = Queue()
    name = q.name
    where, pid, began = processes.user().rsplit("/", 2)
    inside.run(q, inside.operations(q).enlist(f"{where}/{pid}/{int(began) - 1000}"))
    q.close()
    assert not any(name.encode() in key for key in broker.left())


def test_a_forked_child_that_has_not_used_the_queue_keeps_it_when_its_parent_is_killed(broker):
    parent_end, to_parent = multiprocessing.Pipe()
    child_end, to_child = multiprocessing.Pipe()
    parent = multiprocessing.get_context("spawn").Process(
        target=programs.hand_over_and_die, args=(to_parent, to_child)
    )
    parent.start()
    child, name = parent_end.recv()
    assert child_end.recv() == "up"
    parent_end.send("die")
    parent.join()
    try:
        run("import pressure_mp; pressure_mp.Queue().close()")
        assert any(name.encode() in key for key in broker.left())
        child_end.send("use it")
        assert child_end.recv() == ("child", 0)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_forked_child_does_not_wait_for_a_broker_that_is_away(sent):
    server = Server("valkey", ("--appendonly", "yes")).start()
    try:
        queues = [Queue(url=server.url, reconnect=HOURS) for _ in range(20)]
        server.process.send_signal(sent)
        child = multiprocessing.get_context("fork").Process(target=do_nothing)
        child.start()
        child.join(LIMIT)
        assert child.exitcode == 0
        server.kill()
        server.start()
        for queue in queues:
            queue.close()
    finally:
        server.stop()


def do_nothing():
    pass


def test_a_handle_to_a_queue_that_is_gone_says_so(broker):
    q = Queue()
    copy = pickle.dumps(q)
    q.delete()
    with pytest.raises(pressure_mp.QueueDoesNotExistError, match="is gone"):
        pickle.loads(copy).put(1)
    q.close()
    assert broker.left() == []


@pytest.mark.parametrize("in_loop", [True, False], ids=["in the loop", "after the loop"])
def test_keys_of_cancelled_calls_of_asyncio_are_removed_with_their_handle(broker, in_loop):
    async def begin_and_cancel():
        queue = aio.Queue(buffering=0)
        await queue.open()
        for rounds in range(40):
            calls = [asyncio.ensure_future(queue.put(1)), asyncio.ensure_future(queue.get())]
            for _ in range(rounds % 8):
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)

    def is_gone():
        gc.collect()
        return not broker.client.keys(f"{broker.prefix}*")

    async def main():
        await begin_and_cancel()
        if in_loop:
            await loops.until(is_gone)

    loops.run(main)
    until(is_gone)


def test_anonymous_names_carry_a_hash_tag(broker):
    with Queue() as q:
        assert q.name.startswith("{")
        assert q.name.endswith("}")


def test_a_queue_stays_for_a_pickled_handle_when_the_first_handle_is_gone(broker):
    q = Queue()
    copy = pickle.dumps(q)
    q.put("kept")
    q.close()
    del q
    gc.collect()
    assert until(lambda: pickle.loads(copy).get()) == "kept"
