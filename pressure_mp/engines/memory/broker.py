"""The broker in memory: its requests are done one after the other."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from ..contract.brokers import Finding
from ..contract.default_replies import default_reply
from ..contract.hosts import QueueKey
from ..contract.requests import Request
from ..requests.brokers import Broker, for_brokers
from ..requests.line import Caller


def find() -> list[Finding]:
    """Tell that the data end with the program."""
    return [
        Finding(
            "memory://",
            "this process",
            "The queues belong to one process, and end with it.",
            "Use a server, or embedded:///directory, for items that must stay.",
        )
    ]


class MemoryBroker:
    """All queues of one address, their samples, and the notes of a host."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lock = threading.Lock()

    def host(self, noted: set[QueueKey]) -> MemoryBroker:
        """Return the broker as the processes of a host use it."""
        return MemoryBroker(replace(self._broker, noted=noted))

    def call(self, request: Request, caller: Caller) -> Any:
        do = for_brokers.get(type(request))
        if do is None:
            return default_reply(request)
        with self._lock:
            return do(self._broker, request)

    def leave(self, caller: Caller) -> None:
        """Do nothing: no caller waits here."""
