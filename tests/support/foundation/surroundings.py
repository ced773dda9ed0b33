"""What clients see of time, of each other and of their bells, in a simulation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

from simulated_fdb.scheduling import CLIENT, Scheduler

from pressure_mp.engines.bells import ThreadBell
from pressure_mp.engines.foundationdb import store
from pressure_mp.engines.kv import line, session, space
from pressure_mp.identity import processes

#: The seconds since the epoch at which simulations begin.
_BEGIN = 1_800_000_000


class Surroundings:
    """Of the simulation that runs now."""

    scheduler: Scheduler
    #: Whether a session looks again by itself, and keeps its place only so long as it does.
    has_ticks = False
    _tickets = 0

    def __init__(self) -> None:
        self._thread = threading.current_thread()

    def are_seen(self) -> bool:
        """Whether the calling thread is part of the simulation. Threads that earlier tests left
        see the time and the processes as they are."""
        thread = threading.current_thread()
        return thread is self._thread or thread.name == CLIENT

    def instead_of(self, real: Callable[..., Any], simulated: Callable[..., Any]) -> Any:
        return lambda *args: (simulated if self.are_seen() else real)(*args)

    def seconds(self) -> float:
        """The time of the client that runs, whose clock may be ahead."""
        client = self.scheduler.current
        return self.scheduler.clock() / 1_000_000 + (client.ahead if client is not None else 0)

    def ticket(self) -> str:
        self._tickets += 1
        return f"{self.client()}/{self._tickets}"

    def client(self) -> str:
        client = self.scheduler.current
        return f"client-{self.scheduler.clients.index(client) if client is not None else 'none'}"

    def state(self, id: str) -> str:
        return "unknown" if self.has_ticks else "alive"


@contextmanager
def simulated() -> Iterator[Surroundings]:
    """Have the clients of the engine see them, until the end of the block."""
    here = Surroundings()
    instead_of = here.instead_of

    class Bell(ThreadBell):
        async def wait(self, seconds: float) -> bool:
            if not here.are_seen():
                return await super().wait(seconds)
            limit = seconds if here.has_ticks else None
            return here.scheduler.until(lambda: not self._rung.empty(), limit)

    def nanoseconds() -> int:
        return int((_BEGIN + here.seconds()) * 1_000_000_000)

    clock = SimpleNamespace(
        monotonic=instead_of(time.monotonic, here.seconds),
        monotonic_ns=time.monotonic_ns,
        time=time.time,
        time_ns=instead_of(time.time_ns, nanoseconds),
    )
    liveness = SimpleNamespace(
        state=instead_of(processes.state, here.state), is_lost=processes.is_lost
    )
    with ExitStack() as stack:
        for where, name, what in (
            (space, "time", clock),
            (store, "time", clock),
            (session, "time", clock),
            (session, "ThreadBell", Bell),
            (session, "ticket", instead_of(session.ticket, here.ticket)),
            (session, "client_id", instead_of(session.client_id, here.client)),
            (line, "processes", liveness),
        ):
            stack.enter_context(mock.patch.object(where, name, what))
        yield here
