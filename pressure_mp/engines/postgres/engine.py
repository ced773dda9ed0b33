"""The PostgreSQL engine: the queues in one schema of a database."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from dataclasses import dataclass, field

from ...exceptions import ArgumentError, PressureError
from ..contract.hosts import Leave
from ..contract.session import DEFAULTS, ONE_TRY, Options
from . import item_ways, task_ways  # noqa: F401 - these fill the table of ways
from .address import PostgresAddress
from .binding import Binding, Known
from .broker import PostgresBroker
from .listener import Listener
from .loop_pool import LoopPool
from .loop_session import AsyncPostgresSession
from .pool import Pool
from .quick import Quick
from .session import PostgresSession
from .statements import Statements
from .transactions import AsyncTransactionSession, TransactionSession

_TASKS = "tasks"


class PostgresEngine:
    """The engine of one schema, which threads and event loops share."""

    opens_at_once = False

    def __init__(self, address: PostgresAddress) -> None:
        self.address = address
        self.prefix = address.prefix
        self.statements = Statements(address.schema)
        self.thread_pool = Pool(address)
        # Where one connection broke, others are most likely broken too, or about to be.
        self.listener = Listener(address, self.thread_pool.close_idle)
        self.known = Known()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopPool] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def loop_pool(self) -> LoopPool:
        loop = asyncio.get_running_loop()
        pool = self._loops.get(loop)
        if pool is None:
            for other in [one for one in self._loops if one.is_closed()]:
                self._loops.pop(other).abandon()  # it ended without closing its connections
            pool = self._loops[loop] = LoopPool(self.address)
        return pool

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> PostgresQueue:
        if "\0" in name:
            raise ArgumentError(
                f"queue {name!r} has a zero character in its name, which PostgreSQL cannot keep"
            )
        return self._bind(name, _TASKS if discipline == _TASKS else "items", discipline, options)

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> PostgresQueue:
        return self._bind(name, "items" if discipline == _TASKS else _TASKS, discipline, options)

    def _bind(self, name: str, kind: str, discipline: str, options: Options) -> PostgresQueue:
        quick = Quick(self.statements, self.prefix, name, discipline, options)
        own = self.address, self.statements, self.listener, self.thread_pool, self.known
        return PostgresQueue(name, kind, discipline, options, *own, quick, engine=self)

    def broker(self, options: Options = DEFAULTS) -> PostgresBroker:
        return PostgresBroker(self, options)

    def host(self, name: str, options: Options = DEFAULTS) -> PostgresBroker:
        return PostgresBroker(self, options, name)

    def lanes(self) -> list[str]:
        pools = [self.thread_pool, *self._loops.values()]
        return [lane for pool in pools for lane in pool.lanes()]

    def after_fork(self) -> None:
        for pool in list(self._loops.values()):
            pool.after_fork()
        self._loops.clear()  # the child has none of the parent's event loops
        self.thread_pool.after_fork()
        self.listener.after_fork()

    def close(self, kept: int = 0) -> None:
        if self.lanes() and self.thread_pool.was_connected:
            with suppress(PressureError):
                self.host("").session().call(Leave(()), ONE_TRY)
        self.listener.close()
        self.thread_pool.close_idle(kept)


@dataclass(frozen=True)
class PostgresQueue(Binding):
    """One queue in a database."""

    engine: PostgresEngine = field(kw_only=True)

    def is_beside(self, other: object) -> bool:
        if not isinstance(other, PostgresQueue):
            return False
        here, there = self.address, other.address
        return here._replace(prefix="") == there._replace(prefix="")

    def session(self) -> PostgresSession:
        return PostgresSession(self, self.thread_pool)

    def asession(self) -> AsyncPostgresSession:
        return AsyncPostgresSession(self, self.engine.loop_pool)

    def check_may_open(self, connection: object) -> None:
        """Raise nothing: a connection of the engine opens the queue."""

    def session_in(self, connection: object) -> TransactionSession:
        return TransactionSession(self, self.thread_pool, connection)

    def asession_in(self, connection: object) -> AsyncTransactionSession:
        return AsyncTransactionSession(self, self.engine.loop_pool, connection)
