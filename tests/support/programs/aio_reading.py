"""Programs of asyncio that read ahead unasked, and are stopped, killed or ended."""

from __future__ import annotations

import asyncio
import os
import signal

import inside
from waiting import HOURS

from pressure_mp.buffering import window


async def _get_some(q, more):
    """Get until so many are read ahead; the last item that was handed out."""
    last = await q.get()
    while inside.reserved_in_loop(q) < more:
        last = await q.get()
    return last


def get_and_be_killed(connection, q):
    """Be killed in the midst of what was read ahead; tell what was handed out last."""
    window.KEPT = HOURS  # however long it takes until it is killed

    async def main():
        last = await _get_some(q, 50)
        for _ in range(20):
            last = await q.get()
        connection.send(last)
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())


def get_some_and_stop(connection, q):
    """Be stopped with items that were read ahead, and then get more; send these."""

    async def main():
        connection.send(await _get_some(q, 50))
        os.kill(os.getpid(), signal.SIGSTOP)
        connection.send([await q.get() for _ in range(3)])

    asyncio.run(main())


def end_the_loop(connection, q):
    """Let the loop end with items that were read ahead, and live on until told."""

    async def main():
        connection.send(await _get_some(q, 50))

    asyncio.run(main())
    connection.send("ended")
    connection.recv()
