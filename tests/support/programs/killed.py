"""Processes that are killed while they have or use something."""

from __future__ import annotations

import os
import signal
from typing import Any

from pressure_mp import Queue


def take_and_die(take: str, queue: Any) -> None:
    """With what ``take``, a method of the queue, returned."""
    getattr(queue, take)()
    os.kill(os.getpid(), signal.SIGKILL)


def put_and_die(url: str, prefix: str) -> None:
    """With an anonymous queue that nobody else uses."""
    Queue(url=url, prefix=prefix).put("x")
    os.kill(os.getpid(), signal.SIGKILL)
