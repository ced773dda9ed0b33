"""Processes whose event loops wait at a queue in shared memory."""

from __future__ import annotations

import asyncio
import os
import time
from multiprocessing.connection import Connection
from typing import Any

from pressure_mp import JoinableQueue, aio


def handle_of(queue: Any) -> Any:
    return (aio.JoinableQueue if isinstance(queue, JoinableQueue) else aio.Queue).of(queue)


def get_and_tell(queue: Any, told: Connection) -> None:
    """Get one item, and tell it."""

    async def main() -> None:
        told.send(await handle_of(queue).get())

    asyncio.run(main())


def get_and_keep(queue: Any, told: Connection) -> None:
    """Get one item, tell it, and go on to wait for another one."""

    async def main() -> None:
        there = handle_of(queue)
        told.send(await there.get())
        await there.get()

    asyncio.run(main())


def fork_while_waiting(queue: Any, told: Connection) -> None:
    """Wait for an item, and fork meanwhile a child that stays."""

    async def main() -> None:
        waits = asyncio.ensure_future(handle_of(queue).get())
        await asyncio.sleep(0.05)
        child = os.fork()
        if not child:
            time.sleep(10_000)
        told.send(child)
        await waits

    asyncio.run(main())


def echo(there: Any, back: Any, number: int) -> None:
    """Put back what comes."""

    async def main() -> None:
        came, goes = handle_of(there), handle_of(back)
        for _ in range(number):
            await goes.put(await came.get())
        await goes.flush()

    asyncio.run(main())


def hold_the_lock(queue: Any, told: Connection) -> None:
    """Have the lock for takes, and keep it."""

    def stay() -> None:
        told.send(True)
        time.sleep(10_000)

    queue._at.attached().items.ring.taking.run(stay)


def get_and_write(there: Any, write: int) -> None:
    """Get for ever, and write each pair to a pipe when it was got: one line, one write."""

    async def main() -> None:
        queue = handle_of(there)
        while True:
            producer, count = await queue.get()
            os.write(write, b"%d %d\n" % (producer, count))

    asyncio.run(main())


def work(there: Any, write: int) -> None:
    """Get items for ever in three tasks; write each to a pipe, and acknowledge it."""

    async def work_on(queue: Any) -> None:
        while True:
            item = await queue.get()
            os.write(write, b"%d\n" % item)
            await queue.task_done()

    async def main() -> None:
        queue = handle_of(there)
        await asyncio.gather(*(work_on(queue) for _ in range(3)))

    asyncio.run(main())
