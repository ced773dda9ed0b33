"""Modules of programs whose handlers the worker program runs: the queue is named by the
environment."""

import os
import time
from pathlib import Path

from executors.functions import note_here
from pressure_mp import TaskQueue

queue = TaskQueue(os.environ["TASKS"])
idle = TaskQueue(os.environ["TASKS"])
other = {"name": "no queue"}


@queue.worker(backoff=0)
def handle(task):
    """Do what the task says: note it, wait for a file, need memory, or die once."""
    what, *given = task.data
    note_here(what)
    if what == "hold":
        while not Path(given[0]).exists():
            time.sleep(0.01)
        note_here("done")
    elif what == "grow":
        bytearray(given[0])[::4096] = b"x" * (-(-given[0] // 4096))
    return os.getpid()
