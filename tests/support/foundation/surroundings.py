"""What clients see of time, of each other and of their bells, in a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest import mock

from simulated_fdb.scheduling import Scheduler

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
    """Have the clients of the engine see them, until the end of the block. Threads of other tests
    see the time and the processes as they are."""
    here = Surroundings()

    class Bell(ThreadBell):
        async def wait(self, seconds: float) -> bool:
            limit = seconds if here.has_ticks else None
            return here.scheduler.until(lambda: not self._rung.empty(), limit)

    clock = SimpleNamespace(
        monotonic=here.seconds,
        time_ns=lambda: int((_BEGIN + here.seconds()) * 1_000_000_000),
    )
    liveness = SimpleNamespace(state=here.state, is_lost=processes.is_lost)
    with ExitStack() as stack:
        for where, name, what in (
            (space, "time", clock),
            (store, "time", clock),
            (session, "time", clock),
            (session, "ThreadBell", Bell),
            (session, "ticket", here.ticket),
            (session, "client_id", here.client),
            (line, "processes", liveness),
        ):
            stack.enter_context(mock.patch.object(where, name, what))
        yield here
