"""Programs that run handlers on tasks in an event loop, and that tests tell to stop and kill."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from pressure_mp import aio
from programs.workers import Warnings


def work(
    connection: Connection, queue: aio.TaskQueue[Any], is_plain: bool = False, **options: Any
) -> None:
    """Say which task was begun; finish it when told to. In the end say that all is well."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings = Warnings()
    logging.getLogger("pressure_mp").addHandler(warnings)
    told = threading.Semaphore(0)
    loop_told = asyncio.Semaphore(0)

    def handle(task: Any) -> None:
        connection.send(task.data)
        told.acquire()

    async def ahandle(task: Any) -> None:
        connection.send(task.data)
        await loop_told.acquire()

    def listen(loop: asyncio.AbstractEventLoop) -> None:
        with suppress(EOFError):
            while connection.recv():
                told.release()
                loop.call_soon_threadsafe(loop_told.release)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=listen, args=(loop,), daemon=True).start()
        before = _handlers()
        await queue.run(handle if is_plain else ahandle, **options)
        connection.send(("ended", before == _handlers(), warnings.texts))

    asyncio.run(main())


def _handlers() -> list[Any]:
    return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]


def take_and_put(connection: Connection, queue: aio.TaskQueue[Any]) -> None:
    """Acknowledge one task, and put what it had with the queue's settings."""

    async def main() -> None:
        async with await queue.take() as task:
            await queue.put((task.data, queue.settings.max_deliveries), tube="back")

    asyncio.run(main())
    connection.send("done")


def square(data):
    """Write the id of this process into the file of a number; return what cannot be pickled."""
    path, number = data
    with open(f"{path}/{number}", "w") as file:
        file.write(str(os.getpid()))
    return lambda: "what it returns need not be one that can be pickled"


def stop_or_die(how):
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    next(iter(()))
