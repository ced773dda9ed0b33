"""The broker in this process's memory."""

from __future__ import annotations

from typing import Any

import inside

from brokers.broker import Broker


class Memory(Broker):
    """Each URL has its own queues; there is nothing to start."""

    scheme = "memory"
    looks = ("pressure_mp.engines.contract.session.TICK",)

    def url_for(self, name: str, limited: bool = True) -> str:
        return f"memory://{name}"

    @staticmethod
    def waiters(engine: Any, binding: Any) -> int:
        return sum(map(len, binding.queue.place.lines.all))

    @staticmethod
    def held(engine: Any, binding: Any) -> list[str]:
        lines = binding.queue.place.lines
        return [f"{[*line.waiting()]}" for line in (lines.putters, lines.takers) if line]

    @staticmethod
    def contents(engine: Any, handle: Any, what: str) -> int:
        state = inside.bind(handle).queue.place.state
        return len(getattr(state.contents, {"uploads": "kept"}.get(what, what))) if state else 0
