"""Processes that are killed while they have or use something."""

from __future__ import annotations

import os
import signal
from typing import Any

from pressure_mp import Queue
from pressure_mp.identity import processes


def take_and_die(take: str, queue: Any) -> None:
    """With what ``take``, a method of the queue, returned."""
    getattr(queue, take)()
    os.kill(os.getpid(), signal.SIGKILL)


def finish_and_die(queue: Any) -> None:
    """With nothing: what it took is acknowledged."""
    queue.get()
    queue.task_done()
    queue.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def take_elsewhere_and_die(take: str, queue: Any) -> None:
    """The same on another machine: this machine does not know whether the process has ended."""
    processes._once["mark"] = "0" * 12
    take_and_die(take, queue)


def take_and_stop(take: str, queue: Any) -> None:
    """The same, but the process is stopped: it may go on later."""
    getattr(queue, take)()
    os.kill(os.getpid(), signal.SIGSTOP)


def put_and_die(url: str, prefix: str) -> None:
    """With an anonymous queue that only this process uses."""
    Queue(url=url, prefix=prefix).put("x")
    os.kill(os.getpid(), signal.SIGKILL)
