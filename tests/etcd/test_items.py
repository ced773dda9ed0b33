"""The engine of stores of ordered keys over a real server with optimistic transactions: conflicts
of several processes, lost replies, clients that are killed, a server that stops."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter

import pytest
import started
from brokers.etcd import Etcd, use
from waiting import Background

from pressure_mp import JoinableQueue, Queue
from pressure_mp.engines import registry

pytestmark = pytest.mark.skipif(not Etcd.is_there(), reason="etcd is not installed")

CLIENT = """
import sys
from brokers.etcd import use
from pressure_mp import Empty, JoinableQueue
use()
url, name, what, me, number = sys.argv[1:]
queue = JoinableQueue(name=name, url=url)
print("ready", flush=True)
for place in range(int(number)):
    if what == "put":
        queue.put(f"{me}-{place}")
        print(f"{me}-{place}", flush=True)
    else:
        item = queue.get(timeout=40)
        print("got", item, flush=True)
        queue.task_done()
        print(item, flush=True)
"""


@pytest.fixture(scope="module")
def server():
    use()
    with Etcd().serving() as server:
        yield server
    del registry._KINDS["etcd"]


def client(url, name, what, me, number):
    command = [sys.executable, "-c", CLIENT, url, name, what, str(me), str(number)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=started.environment()
    )
    assert process.stdout.readline() == "ready\n"
    return process


def rest(process):
    """The lines that a client still writes. ``communicate()`` would lose those that ``readline()``
    had read ahead."""
    with process.stdout as lines:
        return lines.read().splitlines()


def done(process):
    """The puts or acknowledgements that a client had confirmed."""
    lines = rest(process)
    assert process.wait(60) == 0
    return [line for line in lines if not line.startswith("got")]


def test_each_item_is_got_once_by_processes_whose_transactions_conflict(server, name):
    queue = JoinableQueue(name=name, url=server.url)
    putters = [client(server.url, name, "put", me, 15) for me in range(2)]
    takers = [client(server.url, name, "take", me, 15) for me in range(2)]
    put = [item for putter in putters for item in done(putter)]
    assert Counter(put) == Counter(item for taker in takers for item in done(taker))
    queue.join()


def test_an_item_is_put_and_got_once_if_replies_are_lost(server, name):
    url = server.url_that_loses(0.2)
    queue = JoinableQueue(name=name, url=url)
    for number in range(40):
        queue.put(number)
    assert queue.qsize() == 40
    got = []
    for _ in range(40):
        got.append(queue.get())
        queue.task_done()
    assert got == list(range(40))
    queue.join()
    assert queue._at.binding.queue.space.store.unknown > 5


def test_items_that_a_killed_client_had_confirmed_are_there_once(server, name):
    queue = JoinableQueue(name=name, url=server.url)
    putter, holder = client(server.url, name, "put", 0, 40), client(server.url, name, "take", 1, 40)
    put = [putter.stdout.readline().strip() for _ in range(15)]
    taken = [holder.stdout.readline().strip() for _ in range(11)]
    for process in (putter, holder):
        process.kill()
    put += rest(putter)
    taken += rest(holder)
    for process in (putter, holder):
        process.wait()
    acknowledged = {line for line in taken if not line.startswith("got")}
    left = []
    while unfinished := queue.stats().unfinished:
        for _ in range(unfinished):
            left.append(queue.get())
            queue.task_done()
    assert len(left) == len({*left})
    assert not acknowledged & {*left}
    # The last put, or acknowledgement, may be done and not confirmed.
    missing = {*put} - acknowledged - {*left}
    assert missing <= {taken[-1].removeprefix("got ")}


def test_calls_go_on_when_a_server_that_was_stopped_goes_on(server, name):
    queue = Queue(name=name, url=server.url)
    queue.put("first")
    server.pause()
    putting = Background(lambda: [queue.put(number) for number in range(5)])
    time.sleep(1.5)  # longer than a client waits for a reply
    server.go_on()
    putting.result()
    assert [queue.get() for _ in range(6)] == ["first", *range(5)]


def test_calls_go_on_when_a_server_that_was_killed_is_started_again(server, name):
    queue = Queue(name=name, url=server.url)
    putter = client(server.url, name, "put", 0, 60)
    lines = [putter.stdout.readline().strip() for _ in range(10)]
    server.kill()
    server.run()
    put = lines + done(putter)
    assert [queue.get() for _ in range(60)] == put == [f"0-{place}" for place in range(60)]
