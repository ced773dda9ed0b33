"""Programs that use queues, and end when they are told that their broker is away."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time

import pressure_mp
from pressure_mp import JoinableQueue, Queue, TaskQueue
from pressure_mp.background import at_exit, lifetimes

if __name__ in ("__main__", "__mp_main__"):  # not where a test imports this
    at_exit.LIMIT = float(os.environ["EXIT_LIMIT"])
    at_exit._left = at_exit.LIMIT

#: Seconds for which a handle would try to reach its broker.
HOURS = 10_000.0
# Programs that leave something behind, for which they need their broker at their end. Items that
# are put while the server is stopped are in the buffer when the program ends.


def anonymous(url):
    queues = [Queue(url=url, reconnect=HOURS) for _ in range(5)]
    for q in queues:
        q.put(1)
        q.flush()
    return queues, lambda: None


def in_flight(url):
    q = JoinableQueue(url=url, reconnect=HOURS)
    q.put_many(range(3))
    assert [q.get(), q.get()] == [0, 1]
    return q, lambda: None


def buffered(url):
    q = JoinableQueue(url=url, buffering=10, prefetch=10, reconnect=HOURS)
    for number in range(20):
        q.put(number)
    assert q.get() == 0
    q.put(20)
    q.flush()
    return q, lambda: [q.put(number) for number in range(3)]


def tasks(url):
    q = TaskQueue(url=url, reconnect=HOURS)
    q.put("one")
    held = q.take()
    return (q, held), lambda: None


def named(url):
    options = {"buffering": 10, "prefetch": 10, "reconnect": HOURS}
    q = Queue(name=f"named-{time.time_ns()}", url=url, **options)
    q.put(0)
    q.flush()
    return q, lambda: [q.put(number) for number in range(3)]


def run(what, *urls, wait=sys.stdin.readline):
    """Use a queue, wait for a line, and end as such a program does."""
    used = [globals()[what](url) for url in urls]
    print("ready", flush=True)
    wait()
    for _, last in used:
        last()
    print("ending", flush=True)
    sys.exit(7)


def in_child(method, what, url):
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    child = context.Process(target=use_in_child, args=(what, url, there))
    child.start()
    sys.stdin.readline()
    here.send("go on")
    child.join()
    print("ending", flush=True)
    sys.exit(child.exitcode)


def use_in_child(what, url, there):
    run(what, url, wait=there.recv)


def handing_back(url):
    """End while the thread that clears up after garbage puts back a queue that it had in hand."""
    q = Queue(url=url)
    (key,) = lifetimes._uses
    going, begun = threading.Event(), threading.Event()

    def hand_back():
        lifetimes._clearing.acquire()
        with lifetimes._lock:
            lifetimes._in_hand.add(lifetimes._uses.pop(key))
        begun.set()
        going.wait()
        with lifetimes._lock:
            lifetimes._uses.update({use.key: use for use in lifetimes._in_hand})
            lifetimes._in_hand.clear()

    class Uses(dict):
        def values(self):
            found = [*super().values()]
            going.set()
            thread.join(0.5)
            return found

    lifetimes._uses, lifetimes._PATIENCE = Uses(lifetimes._uses), 0.0
    thread = threading.Thread(target=hand_back, daemon=True)
    thread.start()
    begun.wait()
    print("ready", flush=True)
    sys.stdin.readline()
    print("ending", flush=True)
    del q


def full(url):
    """Put into a queue that another program filled after this program last looked."""
    q = Queue(4, name="full", url=url, buffering=10)
    q.put("first")
    q.flush()
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(3):
        q.put(number)
    print("ending", flush=True)


if __name__ == "__main__":
    assert pressure_mp
    globals()[sys.argv[1]](*sys.argv[2:])
