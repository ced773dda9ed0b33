"""The broker of the first engine, in this process's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from brokers.broker import Broker
from pressure_mp import engines
from pressure_mp.engines import registry

FOLDER = str(Path(__file__).parents[1] / "more_engines")


class Plain(Broker):
    """While it runs, the engine is one of the package's."""

    scheme = "plain"

    def start(self) -> Plain:
        engines.__path__.append(FOLDER)
        registry._KINDS["plain"] = registry._Kind("plain", "plain:PlainEngine")
        return self

    def stop(self) -> None:
        engines.__path__.remove(FOLDER)
        del registry._KINDS["plain"]

    def url_for(self, name: str, limited: bool = True) -> str:
        return f"plain://{name}"

    @staticmethod
    def waiters(engine: Any, binding: Any) -> int:
        return len(binding.queue.putters) + len(binding.queue.takers)
