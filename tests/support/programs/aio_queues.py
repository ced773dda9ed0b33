"""Programs with queues of asyncio, which tests end in every way."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pressure_mp
from pressure_mp import Queue, aio

#: Seconds.
HOURS = 10_000.0

NUMBER = 500


async def put_many(url: str, name: str) -> None:
    """Its last statement is a put."""
    queue: aio.Queue[int] = aio.Queue(name=name, url=url, buffering=2 * NUMBER)
    for number in range(NUMBER):
        await queue.put(number)


def run_to_its_end(url: str, name: str) -> None:
    asyncio.run(put_many(url, name))


def stop_and_exit(url: str, name: str) -> None:
    """The loop is left with what it has not sent."""
    asyncio.new_event_loop().run_until_complete(put_many(url, name))


def leave_a_loop_in_a_thread(url: str, name: str) -> None:
    """The loop runs in a daemonic thread while the process ends."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(put_many(url, name), loop).result()


def raise_an_error(url: str, name: str) -> None:
    async def main() -> None:
        await put_many(url, name)
        raise SystemExit(0)

    asyncio.run(main())


def put_into_deleted_queue(url: str, name: str) -> None:
    """Put into a deleted queue: no call is told that its item cannot be sent."""

    async def main() -> None:
        queue: aio.Queue[int] = aio.Queue(name=name, url=url, buffering=NUMBER)
        await queue.put(0)
        await queue.flush()
        Queue.attach(name, url=url).delete()
        for number in range(3):
            await queue.put(number)

    asyncio.run(main())


def wait_in(url: str, name: str, call: str) -> None:
    """Wait for ever, in a call of a JoinableQueue."""

    async def main() -> None:
        queue: aio.JoinableQueue[Any] = aio.JoinableQueue(name=name, url=url)
        await queue.open()
        print("waits", flush=True)
        args = (0,) if call == "put" else ()
        await getattr(queue, call)(*args)
        print("came", flush=True)

    asyncio.run(main())


def fork_while_a_task_waits(url: str, name: str) -> None:
    """Tell the child's pid; then what was got, and wait for ever."""

    async def main() -> None:
        queue: aio.Queue[Any] = aio.Queue(name=name, url=url)
        await queue.open()
        getting = asyncio.ensure_future(queue.get())
        while (await queue.why_blocked()).get.holder is None:
            await asyncio.sleep(0.001)
        child = os.fork()
        if not child:
            os.close(1)
            gc.collect()
            signal.pause()
        print(child, flush=True)
        print(await getting, flush=True)
        await queue.get()

    asyncio.run(main())


def close_a_loop_with_gets(told: Connection, url: str, name: str, kind: str, loops: str) -> None:
    """Close a loop in which tasks wait, with a lease of hours; then tell which item another handle
    gets, and which errors no call raised."""
    loop = importlib.import_module(loops).new_event_loop()
    queue = getattr(aio, kind)(name=name, url=url, lease=HOURS)
    problems: list[str] = []
    sys.unraisablehook = lambda found: problems.append(repr(found.exc_value))

    async def wait() -> list[Any]:
        await queue.open()
        tasks = [asyncio.ensure_future(queue.get()) for _ in range(3)]
        while (await queue.why_blocked()).get.holder is None:
            await asyncio.sleep(0.001)
        return tasks

    tasks = loop.run_until_complete(wait())
    loop.close()
    with getattr(pressure_mp, kind)(name=name, url=url, lease=HOURS) as other:
        other.put("item")
        item = other.get()
        if kind == "JoinableQueue":
            other.task_done()
        other.delete()
    del tasks
    gc.collect()
    told.send((item, problems))


def get_and_say(handle: Any, connection: Any) -> None:
    """In a child: get with a handle that came over, in a loop of its own."""

    async def main() -> Any:
        item = await handle.get()
        await handle.put("an answer")
        return item

    connection.send(asyncio.run(main()))


if __name__ == "__main__":
    program: Callable[..., None] = globals()[sys.argv[1]]
    program(*sys.argv[2:])
