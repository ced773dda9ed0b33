"""Waiting for what a test can observe, instead of sleeping and hoping."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import CodeType
from typing import Any

import psutil
import redis

#: Seconds: longer than any test waits. A call that lasts that long unless it is woken was woken.
HOURS = 10_000.0
#: Seconds after which a test gives up waiting. No machine is that slow.
LIMIT = 40.0


def until(condition: Callable[[], Any], limit: float = LIMIT) -> Any:
    """Look until ``condition()`` is true; its value. Fails the test after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {limit} s: {condition}"
        time.sleep(0.002)


def has_ended(process: psutil.Process) -> bool:
    """Whether all of it has: its first thread may end before the others."""
    try:
        is_zombie = process.status() == psutil.STATUS_ZOMBIE
        return not process.is_running() or (is_zombie and process.num_threads() <= 1)
    except psutil.NoSuchProcess:
        return True


def blocked(client: redis.Redis) -> int:
    """How many connections of a server are in a blocking command."""
    return int(client.info("clients")["blocked_clients"])


def is_of_engine(code: CodeType) -> bool:
    return "pressure_mp/engines/" in code.co_filename


def parks(thread: threading.Thread) -> bool:
    """Whether a thread waits in an operation, on any engine: the broker knows that it does."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        code = frame.f_code
        if code.co_name in ("wait", "park") and is_of_engine(code):
            return True
        frame = frame.f_back
    return False


def waiters(client: redis.Redis) -> list[str]:
    """The ids of the connections that wait in a command of ours; there is one at least. Between two
    looks of a client there may be none for a moment."""
    found: list[str] = until(
        lambda: [
            seen["id"]
            for seen in client.client_list()
            if seen["cmd"] in ("blmove", "brpop") and "b" in seen["flags"]
        ]
    )
    return found


def lasting(client: redis.Redis, pattern: str) -> list[bytes]:
    """The keys that stay. Replies that are kept for the repeat of a call expire by themselves, and
    so do rings of a bell that no waiter heard."""
    found = sorted(client.scan_iter(match=pattern))
    passing = b":kept:", b":bell:"
    return [
        key for key in found if not any(map(key.__contains__, passing)) or client.ttl(key) == -1
    ]


class Background(threading.Thread):
    """A call in a thread of its own; ``result()`` is what it returned or raised."""

    def __init__(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(daemon=True)
        self._call = lambda: call(*args, **kwargs)
        self._value: Any = None
        self._error: BaseException | None = None
        self.ended_at = 0.0
        self.start()

    def run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:
            self._error = error
        self.ended_at = time.monotonic()

    def result(self, limit: float = LIMIT) -> Any:
        self.join(limit)
        assert not self.is_alive(), f"still running after {limit} s"
        if self._error is not None:
            raise self._error
        return self._value
