"""Modules of programs whose handlers the worker program runs: the queue is named by the
environment."""

import ctypes
import os
import re
import signal
import threading
import time
from pathlib import Path

from executors.functions import note_here
from pressure_mp import TaskQueue

queue = TaskQueue(os.environ["TASKS"], lease=float(os.environ.get("LEASE", "5")))
idle = TaskQueue(os.environ["TASKS"])
hasty = TaskQueue(os.environ["TASKS"])
other = {"name": "no queue"}
is_terminated = threading.Event()


def clean_up(number, frame):
    """Note that the process is to end; take longer than it may if the test says so."""
    note_here("terminated")
    is_terminated.set()
    time.sleep(float(os.environ.get("CLEAN_UP", "0")))
    note_here("cleaned")


if "CLEAN_UP" in os.environ:
    signal.signal(signal.SIGTERM, clean_up)


@queue.worker(backoff=0)
def handle(task):
    """Do what the task says: note it, wait for a file, keep Python's lock, or need memory."""
    what, *given = task.data
    note_here(what)
    if what == "hold":
        while not Path(given[0]).exists():
            time.sleep(0.01)
        note_here("done")
    elif what == "stick":
        ctypes.PyDLL(None).usleep(given[0])  # unlike a CDLL, a PyDLL does not let go of the lock
        note_here("done")
    elif what == "grow":
        bytearray(given[0])[::4096] = b"x" * (-(-given[0] // 4096))
    return os.getpid()


@hasty.worker(on_error="bury", time_limit=0.5, prefetch=int(os.environ.get("PREFETCH", "0")))
def handle_in_time(task):
    """Hold for ever, or until the process is to end, or let no thread run."""
    note_here(task.data)
    if task.data == "fork" and os.fork() == 0:
        note_here("forked")
        time.sleep(3600)
    if task.data in ("hold", "fork"):
        time.sleep(3600)
    elif task.data == "linger":
        is_terminated.wait()
    elif task.data == "stick":
        re.match("(a+)+$", "a" * 60 + "b")
    return os.getpid()
