"""What the processes of a host note in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...exhaustive import assert_never
from ..contract.hosts import Forget, GetRemembered, Leave, QueueKey, Remember
from ..contract.replies import Outcome
from ..contract.requests import HostRequest
from .line import Caller


class MemoryHost:
    """The anonymous queues that one host uses."""

    def __init__(self, noted: set[QueueKey], drop: Callable[[str, str], None]) -> None:
        self._noted = noted
        self._drop = drop

    def call(self, request: HostRequest, caller: Caller) -> Any:
        """Do it."""
        match request:
            case Remember(queue):
                self._noted.add(queue)
            case GetRemembered():
                return sorted(self._noted)
            case Forget(queues):
                self._noted.difference_update(queues)
                for name, discipline in queues:
                    self._drop(name, discipline)
            case Leave():
                pass  # nothing is kept for one process
            case _:
                assert_never(request)
        return Outcome.DONE

    def leave(self, caller: Caller) -> None:
        """Nobody waits here."""
