"""The Redis and Valkey engine: ``call`` is one script, ``park`` is one blocking command."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

from ...identity.client import client_id_bytes
from ..contract.hosts import QueueKey
from ..contract.queues import ANONYMOUS
from ..contract.session import DEFAULTS, Binding, Options
from . import keys
from .address import RedisAddress
from .binding import NotesOfHost, RedisBinding
from .blocking import BlockingSession
from .blocking_wire import BlockingWire
from .broker import RedisBroker
from .lanes import dropped
from .loop_pool import LoopPool
from .loop_session import LoopSession
from .loop_wire import LoopWire
from .pool import Pool
from .role_checks import RoleChecks
from .routes import Direct, Route

if TYPE_CHECKING:
    from ..shared.shared_items import Held, Moved


class RedisEngine:
    """The engine of one server, which threads and event loops share."""

    _route: type[Route] = Direct
    opens_at_once = True

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._role_checks: weakref.WeakValueDictionary[QueueKey, RoleChecks] = (
            weakref.WeakValueDictionary()
        )
        #: The connections that threads use.
        self.thread_pool = Pool(self._route(address, BlockingWire))
        self.notes_of_host = NotesOfHost()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopPool] = (
            weakref.WeakKeyDictionary()
        )

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding:
        queue = RedisQueue(self, name, discipline, options)
        if discipline != keys.FIFO or not name.startswith(ANONYMOUS):
            return queue
        from ..shared.binding import bind  # only anonymous queues need it

        found: Binding = bind(queue, name, options)
        return found

    def role_checks(self, name: str, discipline: str) -> RoleChecks:
        return self._role_checks.setdefault((name, discipline), RoleChecks())

    @property
    def loop_pool(self) -> LoopPool:
        loop = asyncio.get_running_loop()
        pool = self._loops.get(loop)
        if pool is None:
            for other in list(self._loops):
                if other.is_closed():  # its connections refer to it, so it is not collected
                    del self._loops[other]
            pool = self._loops[loop] = LoopPool(self._route(self.address, LoopWire))
        return pool

    def slot(self, key: bytes) -> int:
        return 0

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> Binding | None:
        other = keys.ANY_OWN if discipline == keys.FIFO else keys.FIFO
        return self.bind(name, other, options)

    def broker(self, options: Options = DEFAULTS) -> RedisBroker:
        return RedisBroker(self, options)

    def host(self, name: str, options: Options = DEFAULTS) -> RedisBroker:
        return RedisBroker(self, options, name)

    def lanes(self) -> list[bytes]:
        pools = [self.thread_pool, *list(self._loops.values())]
        return [*dropped, *(lane for pool in pools for lane in pool.lanes())]

    def after_fork(self) -> None:
        for pool in (self.thread_pool, *self._loops.values()):
            pool.after_fork()
        for role_checks in list(self._role_checks.values()):
            role_checks.after_fork()
        self._loops.clear()  # the child has none of the parent's event loops

    def close(self, kept: int = 0) -> None:
        self.thread_pool.close(kept)


class RedisQueue(RedisBinding):
    """A queue, and the sessions on it."""

    def __init__(self, engine: RedisEngine, name: str, discipline: str, options: Options) -> None:
        super().__init__(engine, name, discipline, options)
        self.engine = engine
        self._pool = engine.thread_pool

    def is_beside(self, other: object) -> bool:
        if not isinstance(other, RedisQueue):
            return False
        here, there = self.address._replace(prefix=""), other.address._replace(prefix="")
        return (here, self.slot) == (there, other.slot)

    def session(self) -> BlockingSession:
        return BlockingSession(self, self._pool)

    def asession(self) -> LoopSession:
        return LoopSession(self, self.engine.loop_pool, self.session)

    def add_back(self, items: list[bytes], end: float | None) -> None:
        self._add((0, 0, 0, items), 1, end)

    def add_moved(self, moved: Moved, end: float | None) -> None:
        self._add(moved, 0, end)

    def add_held(self, held: list[Held], end: float | None) -> None:
        args = (part for one in held for part in one)
        self._ask("add_held", (self.options.lease, len(held), *args), end)

    def were_moved(self, end: float | None) -> bool:
        return bool(self._ask("were_moved", (), end)[1])

    def _add(
        self, moved: tuple[int, int, int, list[bytes]], is_front: int, end: float | None
    ) -> None:
        first, size, done, items = moved
        args = (first, size, done, is_front, client_id_bytes(), len(items), *items)
        self._ask("add_moved", args, end)

    def _ask(self, op: str, args: tuple[Any, ...], end: float | None) -> Any:
        session = self.session()
        try:
            return session.script(op, args, end)
        finally:
            session.end()
