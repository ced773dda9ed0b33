"""Sessions of threads and of asyncio tasks, for tests that make requests of an engine."""

from __future__ import annotations

import asyncio
from typing import Any

from pressure_mp.engines import registry
from pressure_mp.engines.contract.session import Options


def bind(url: str, name: str, discipline: str = "fifo", lease: int = 5000) -> Any:
    """A queue of an engine, which need not exist."""
    engine = registry.engine(registry.parse(url).started())
    return engine.bind(name, discipline, Options(lease=lease))


def ask(binding: Any, request: Any) -> Any:
    """The reply to one request, made once."""
    session = binding.session()
    try:
        return session.call(request)
    finally:
        session.end()


class Looped:
    """A session of asyncio, used as one of threads; its loop runs only while it is used."""

    def __init__(self, binding: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._session = self._run(self._begin(binding))

    @staticmethod
    async def _begin(binding: Any) -> Any:
        return binding.asession()

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    def call(self, request: Any) -> Any:
        return self._run(self._session.call(request))

    def wait(self, later: Any, timeout: float | None) -> bool:
        return bool(self._run(self._session.wait(later, timeout)))

    def cancel_wait(self, later: Any) -> None:
        """Begin to wait, and be cancelled at once."""

        async def cancelled() -> None:
            waiting = asyncio.ensure_future(self._session.wait(later, None))
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.wait([waiting])

        self._run(cancelled())

    def end(self) -> None:
        self._run(self._session.end())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
