"""Programs that use a database of their own beside queues: with threads, or with asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

import pressure_mp
from pressure_mp import aio


class Threads:
    """Calls are done when they return."""

    queues: Any = pressure_mp

    def do(self, result: Any) -> Any:
        return result

    def connect(self, url: str, **options: Any) -> Any:
        return psycopg.connect(url, **options)

    def end(self) -> None:
        """Nothing goes on."""


class Asyncio(Threads):
    """Calls are coroutines; one event loop runs them, while the test waits."""

    queues: Any = aio

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def do(self, result: Any) -> Any:
        return self._loop.run_until_complete(result)

    def connect(self, url: str, **options: Any) -> Any:
        return self.do(psycopg.AsyncConnection.connect(url, **options))

    def end(self) -> None:
        self.do(self._loop.shutdown_asyncgens())
        self._loop.close()
