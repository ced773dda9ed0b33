"""A program that closes an event loop while a call on a queue of tasks waits in it."""

from __future__ import annotations

import asyncio

import engines
import pytest
from waiting import HOURS, Background, parks, until

from pressure_mp import TaskQueue, aio


def leave_a_call(connection, url, name, act):
    """Send the data of the task that the next call in line got, or put."""
    engines.stop_ticks(pytest.MonkeyPatch())
    queue = TaskQueue(name, url=url, maxsize=1, lease=HOURS)
    mine = aio.TaskQueue(name, url=url, lease=HOURS)
    if act == "put":
        queue.put("first")
    left = asyncio.new_event_loop()
    waits = left.create_task(mine.put("left") if act == "put" else mine.take(tube="a"))
    left.run_until_complete(asyncio.wait([waits], timeout=0.5))
    left.close()
    following = Background(queue.put, "next") if act == "put" else Background(queue.take, tube="a")
    until(lambda: parks(following))
    if act == "put":
        queue.take().ack()
        following.result()
        connection.send(queue.take(0).data)
    else:
        queue.put("next", tube="a")
        connection.send(following.result().data)
