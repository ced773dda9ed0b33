"""The Redis and Valkey engine: ``call`` is one script, ``park`` is one blocking command."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

from ..contract.queues import GetDiscipline, GetDisciplineReply
from ..contract.replies import Outcome
from ..contract.session import DEFAULTS, Options, QueueKey
from . import keys
from .address import RedisAddress
from .binding import RedisBinding
from .blocking import BlockingSession
from .errors import not_done, refusal
from .outage import Outage, patience
from .pool import LoopPool, Pool
from .rounds import Rounds
from .routes import Direct, Route
from .session import RedisSession
from .wire import AsyncWire, BlockingWire, finish

T = TypeVar("T")

#: One of the disciplines whose queues have keys of our own; these do not differ in what they have
#: in common.
_ANY_OWN = "lifo"
#: So many keys a server looks at before it serves others, when it is searched for queues.
_KEYS_AT_ONCE = 1000


class RedisEngine:
    """One server. Threads share it, and so do event loops."""

    _route: type[Route] = Direct

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._rounds: weakref.WeakValueDictionary[QueueKey, Rounds] = weakref.WeakValueDictionary()
        self._threads = Pool(self._route(address, BlockingWire))
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = (
            weakref.WeakKeyDictionary()
        )

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> RedisQueue:
        return RedisQueue(self, name, discipline, options)

    def rounds(self, name: str, discipline: str) -> Rounds:
        """Those of all who look at a queue."""
        return self._rounds.setdefault((name, discipline), Rounds())

    @property
    def silence(self) -> float | None:
        """Of the connections that threads use."""
        return self._threads.silence

    @property
    def thread_pool(self) -> Pool:
        """The connections that threads use."""
        return self._threads

    @property
    def loop_pool(self) -> Pool:
        """The connections of the running event loop."""
        loop = asyncio.get_running_loop()
        pool = self._loops.get(loop)
        if pool is None:
            pool = self._loops[loop] = LoopPool(self._route(self.address, AsyncWire))
        return pool

    def slot(self, key: bytes) -> int:
        """Where a key is, for the pools' route."""
        return 0

    def rival(self, name: str, discipline: str) -> RedisQueue | None:
        other = _ANY_OWN if discipline == keys.FIFO else keys.FIFO
        return self.bind(name, other)

    def queues(self, options: Options = DEFAULTS) -> Iterator[QueueKey]:
        asked = "MATCH", keys.bounds(self.address.prefix), "COUNT", _KEYS_AT_ONCE, "TYPE", "string"
        told: set[bytes] = set()  # a key may be found twice
        for slot in finish(self._trying(self._threads.slots, options)):
            cursor = b""
            while cursor != b"0":
                scanning = self._request(slot, "SCAN", cursor or b"0", *asked, options=options)
                cursor, found = finish(scanning)
                for bound in set(found) - told:
                    yield from self._queue_with(bound, options)
                told.update(found)

    def _queue_with(self, bound: bytes, options: Options) -> Iterator[QueueKey]:
        """The queue that has that key; none if it was deleted meanwhile."""
        name, own = keys.names_of(self.address.prefix, bound)
        if own is not None:
            session = self.bind(own, _ANY_OWN, options).session()
            try:
                discipline: GetDisciplineReply = session.call(GetDiscipline())
            finally:
                session.end()
            if discipline is Outcome.MISSING:
                return
            if discipline != keys.FIFO:
                yield own, discipline
                return
        yield name, keys.FIFO

    def remember(self, host: str, name: str, discipline: str, options: Options = DEFAULTS) -> None:
        finish(self._registry("SADD", host, f"{discipline} {name}", options=options))

    def remembered(self, host: str, options: Options = DEFAULTS) -> list[tuple[str, str]]:
        noted = finish(self._registry("SMEMBERS", host, options=options))
        return [(name, discipline) for discipline, _, name in map(_split, noted)]

    def forget(self, host: str, queues: Sequence[QueueKey], options: Options = DEFAULTS) -> None:
        names = [f"{discipline} {name}" for name, discipline in queues]
        if names:
            finish(self._registry("SREM", host, *names, options=options))

    def leave(self, queues: Sequence[QueueKey], options: Options = DEFAULTS) -> None:
        pools = [self._threads, *self._loops.values()]
        lanes = [lane for pool in pools for lane in pool.lanes()]
        found: dict[int, list[bytes]] = {}
        for name, discipline in queues:
            kept = keys.kept(self.address.prefix, name, discipline)
            found.setdefault(self.slot(kept), []).extend(kept + lane for lane in lanes)
        for slot, each in found.items():
            if each:
                finish(self._request(slot, "UNLINK", *each, options=options))

    async def _registry(
        self, command: str, host: str, *names: str, options: Options = DEFAULTS
    ) -> Any:
        key = keys.registry(self.address.prefix, host)
        return await self._request(self.slot(key), command, key, *names, options=options)

    async def _request(
        self, slot: int, command: str, *args: Any, options: Options = DEFAULTS
    ) -> Any:
        """A command that may be done twice."""

        async def ask(limit: float | None) -> Any:
            async with self._threads.borrowed(slot, limit) as wire:
                reply = await wire.request(command, *args, timeout=limit)
                if isinstance(reply, Exception) and (not_now := not_done(str(reply), self.address)):
                    raise not_now
                return reply

        reply = await self._trying(ask, options)
        if isinstance(reply, Exception):
            raise refusal(str(reply), self.address, command)
        return reply

    async def _trying(self, ask: Callable[[float | None], Awaitable[T]], options: Options) -> T:
        """What ``ask`` returns, which is given the seconds that it has for a reply; again and again
        as long as the broker is lost, as ``options`` say."""
        outage = Outage(self._threads, options)
        while True:
            try:
                return await ask(patience(None, self._threads.silence, options.until))
            except OSError as error:
                await outage.ride_out(error)

    def after_fork(self) -> None:
        self._threads.after_fork()
        self._loops.clear()  # the child has none of the parent's event loops

    def close(self) -> None:
        self._threads.close()


def _split(noted: bytes) -> tuple[str, str, str]:
    return noted.decode().partition(" ")


class RedisQueue(RedisBinding):
    """A queue, and the sessions on it."""

    def __init__(self, engine: RedisEngine, name: str, discipline: str, options: Options) -> None:
        super().__init__(engine, name, discipline, options)
        self.engine = engine
        self._pool = engine.thread_pool

    def session(self) -> BlockingSession:
        return BlockingSession(self, self._pool)

    def asession(self) -> RedisSession:
        return RedisSession(self, self.engine.loop_pool)
