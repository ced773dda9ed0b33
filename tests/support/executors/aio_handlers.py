"""The same for asyncio."""

import asyncio
import os

from executors.functions import note_here
from pressure_mp import aio

queue = aio.TaskQueue(os.environ["TASKS"])


@queue.worker()
async def handle(task):
    note_here(task.data[0])
    await asyncio.sleep(0)
    return os.getpid()
