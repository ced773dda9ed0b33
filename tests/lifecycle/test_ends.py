"""The end of a program that uses queues: no item is lost, and nothing is written to stderr."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from waiting import LIMIT

from pressure_mp import Queue

HEAD = """
import asyncio, atexit, sys, threading
NAME = sys.argv[1]
"""

#: The first is called last, so that the package has ended all that it can end.
LAST_OF_ALL = """
atexit.register(lambda: ended.wait(60) or sys.stderr.write("it still waits"))
"""

LAST_PUTS = {
    "a first import": """
def last():
    from pressure_mp import Queue
    Queue(name=NAME).put("bye")
atexit.register(last)
""",
    "a first import, in the background": """
def last():
    from pressure_mp import Queue
    Queue(name=NAME, buffering=100).put("bye")
atexit.register(last)
""",
    "a first handle": """
from pressure_mp import Queue
atexit.register(lambda: Queue(name=NAME).put("bye"))
""",
    "a first use, behind all that the package does": """
def last():
    q.put("bye")
atexit.register(last)
from pressure_mp import Queue
q = Queue(name=NAME, buffering=100)
""",
    "asyncio": """
from pressure_mp import aio
async def last():
    async with aio.Queue(name=NAME) as q:
        await q.put("bye")
atexit.register(lambda: asyncio.run(last()))
""",
    "asyncio, used before": """
from pressure_mp import aio
async def last(item):
    async with aio.Queue(name=NAME) as q:
        await q.put(item)
        if item == "first":
            await q.get()
asyncio.run(last("first"))
atexit.register(lambda: asyncio.run(last("bye")))
""",
}

DAEMONS = {
    "a thread that waits": """
def listen():
    try:
        while True:
            q.get()
    finally:
        ended.set()
""",
    "a thread that asks again and again": """
from queue import Empty
def listen():
    try:
        while True:
            try:
                q.get(timeout=0.05)
            except Empty:
                pass
    finally:
        ended.set()
""",
    "a thread that puts": """
import time
def listen():
    try:
        while True:
            q.put(1)
            time.sleep(0.05)
    finally:
        ended.set()
""",
}


def run(program, *arguments, url):
    """Run it to its end; it says nothing on stderr. Returns what it writes to stdout."""
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", HEAD + program, *arguments],
        env={**os.environ, "PRESSURE_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


@pytest.mark.parametrize("last", LAST_PUTS)
def test_an_item_that_is_put_by_a_function_of_atexit_arrives(last, server_url, name):
    run(LAST_PUTS[last], name, url=server_url)
    with Queue(name=name, url=server_url) as q:
        assert q.get(timeout=LIMIT) == "bye"
        q.delete()


@pytest.mark.parametrize("buffering", ["0", "50"])
@pytest.mark.parametrize("use", ["q.open()", "q.put(1); q.get()"])
def test_an_item_that_is_put_by_a_finalizer_when_modules_are_taken_apart_arrives(
    use, buffering, server_url, name
):
    program = f"""
from pressure_mp import Queue
q = Queue(name=NAME, buffering={buffering})
{use}
class Last:
    def __init__(self):
        self.q = q
    def __del__(self):
        self.q.put("bye")
last = Last()
"""
    run(program, name, url=server_url)
    with Queue(name=name, url=server_url) as q:
        assert q.get(timeout=LIMIT) == "bye"
        q.delete()


@pytest.mark.parametrize("daemon", DAEMONS)
@pytest.mark.parametrize("shares", ["0", "1"])
def test_a_daemon_thread_that_uses_an_anonymous_queue_ends_quietly_with_the_program(
    daemon, shares, url, name, monkeypatch
):
    monkeypatch.setenv("PRESSURE_SHARED_MEMORY", shares)
    begin = f"""
ended = threading.Event()
{LAST_OF_ALL}
from pressure_mp import Queue
{DAEMONS[daemon]}
q = Queue()
threading.Thread(target=listen, daemon=True).start()
q.put(1)
"""
    run(begin, name, url=url)


BEGINS_LATE = """
import os, time
from pressure_mp import Queue, interrupts
class Late(threading.Thread):
    def start(self):
        time.sleep(0.2)
        super().start()
        os.write(1, b"it runs")
Queue(name=NAME).delete()
interrupts.start(Late(target=threading.Event().wait, daemon=True))
"""


def test_the_end_waits_until_each_thread_that_was_started_runs(server_url, name):
    """Python frees its state before it runs; what then ends the process is SIGSEGV."""
    assert run(BEGINS_LATE, name, url=server_url) == "it runs"
