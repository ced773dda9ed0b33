"""The same for asyncio."""

import asyncio
import os
import time

from executors.functions import note_here
from pressure_mp import aio

PREFETCH = int(os.environ.get("PREFETCH", "0"))

queue = aio.TaskQueue(os.environ["TASKS"])

hasty = aio.TaskQueue(os.environ["TASKS"])


@queue.worker()
async def handle(task):
    note_here(task.data[0])
    await asyncio.sleep(0)
    return os.getpid()


@hasty.worker(on_error="bury", time_limit=0.5, tube="plain", prefetch=PREFETCH)
def handle_in_time(task):
    note_here(task.data)
    if task.data == "hold":
        time.sleep(3600)
    return os.getpid()


@hasty.worker(on_error="bury", time_limit=0.5)
async def handle_in_loop(task):
    note_here(task.data)
    if task.data == "stick":
        time.sleep(3600)
    return os.getpid()
