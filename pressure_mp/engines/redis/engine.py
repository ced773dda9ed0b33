"""The Redis and Valkey engine: ``call`` is one script, ``park`` is one blocking command."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...config import Address
from ..contract.session import DEFAULTS, TICK, Durability, Options, QueueKey
from . import contents, durability, keys, scripts, signals
from .blocking import BlockingSession
from .errors import not_done, refusal
from .fast_paths import FastPath
from .outage import Lane, Outage, patience
from .packing import pack, pack_command
from .pool import LoopPool, Pool
from .roles import Rounds
from .routes import Direct, Route
from .session import REJECTING, TAKING, RedisSession
from .wire import AsyncWire, BlockingWire, finish

#: Seconds until a client notices that a reply is lost, when its server fell silent; and for which
#: a request may still be under way to the server after its client gave up connecting again.
_UNNOTICED, _STRAY = 10.0, 5.0

#: The server counts whole milliseconds: so many seconds after its time a wait is over there.
_CLOCK = 0.001


class RedisEngine:
    """One server. Threads share it, and so do event loops."""

    outlives_process = True
    _route: type[Route] = Direct

    def __init__(self, address: Address) -> None:
        self.address = address
        self._rounds: weakref.WeakValueDictionary[QueueKey, Rounds] = weakref.WeakValueDictionary()
        self._threads = Pool(self._route(address, BlockingWire))
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = (
            weakref.WeakKeyDictionary()
        )

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> RedisBinding:
        return RedisBinding(self, name, discipline, options)

    def rounds(self, name: str, discipline: str) -> Rounds:
        """Those of all who look at a queue."""
        return self._rounds.setdefault((name, discipline), Rounds())

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

    def rival(self, name: str, discipline: str) -> RedisBinding | None:
        other = "lifo" if discipline == keys.FIFO else keys.FIFO
        return self.bind(name, other)

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
        for each in found.values():
            if each:
                finish(self._request("UNLINK", *each, options=options))

    async def _registry(
        self, command: str, host: str, *names: str, options: Options = DEFAULTS
    ) -> Any:
        key = keys.registry(self.address.prefix, host)
        return await self._request(command, key, *names, options=options)

    async def _request(
        self, command: str, key: bytes, *args: Any, options: Options = DEFAULTS
    ) -> Any:
        """A command that may be done twice."""
        outage = Outage(self._threads, options)
        while True:
            limit = patience(None, self._threads.silence, options.until)
            try:
                async with self._threads.borrowed(self.slot(key), limit) as wire:
                    reply = await wire.request(command, key, *args, timeout=limit)
                    refused = isinstance(reply, Exception)
                    if refused and (not_now := not_done(str(reply), self.address)):
                        raise not_now
            except OSError as error:
                await outage.ride_out(error)
                continue
            if refused:
                raise refusal(str(reply), self.address, command)
            return reply

    def after_fork(self) -> None:
        self._threads.after_fork()
        self._loops.clear()  # the child has none of the parent's event loops

    def close(self) -> None:
        self._threads.close()


def _split(noted: bytes) -> tuple[str, str, str]:
    return noted.decode().partition(" ")


class Waiting(NamedTuple):
    """A blocking command, after how many seconds its caller looks again, and whether the wait is
    over at the server by then."""

    command: tuple[Any, ...]
    limit: float
    ends: bool


class _Command(NamedTuple):
    """The constant part of a script's command for so many arguments."""

    #: Packed, all up to the arguments; with the lane's id left out, if it ends with that.
    head: bytes
    arguments: int
    wants_connection: bool
    in_lane: bool


class RedisBinding:
    """One queue on one server: its key names, and the constant part of each of its commands."""

    def __init__(self, engine: RedisEngine, name: str, discipline: str, options: Options) -> None:
        self.engine = engine
        self.name = name
        self.options = options
        self.discipline = discipline
        self.scripts = scripts.load(discipline)
        self._numbered = {
            op
            for op, script in self.scripts.items()
            if script.once and (options.reconnect or op in TAKING)
        }
        self.slot = engine.slot(self.key("data"))
        self._kept = keys.kept(engine.address.prefix, name, discipline)
        self._keep = options.reconnect + _UNNOTICED + _STRAY
        self._durable: set[str] = set()
        if options.durability:
            self._durable = {op for op, script in self.scripts.items() if script.durable}
            self._keep += durability.LIMIT
        #: The operations that are one exchange over a connection and nothing else, at their best.
        self.quick: set[str] = set()
        if engine.thread_pool.silence is None and options.until is None:
            self.quick = set(self.scripts) - self._durable - set(contents.OPERATIONS)
        #: Those whose replies are to be read by :func:`scripts.read_bare`.
        self.bare = {op for op, script in self.scripts.items() if script.bare}
        self._commands: dict[str, _Command] = {}
        #: The fast paths of a put and of a take of one item, of queues that have any.
        self.offer: FastPath | None = None
        self.poll: FastPath | None = None
        if discipline == keys.FIFO:
            self.offer = FastPath("offer")
            self.poll = FastPath("poll", waiting=FastPath("stand_by"))
        #: Whether a queue of tasks keeps those that are processed, as far as is known.
        self.keeps_processed = False
        self.rounds = engine.rounds(name, discipline)
        self._signals = signals.of(discipline, scripts.storage(discipline).item)
        #: The operations that give back what was granted in line.
        self.giving_back = {line.undo[0] for line in self._signals.lines.values()}
        self.quick -= self.giving_back | REJECTING | {"take_back"}

    def durability(self, op: str) -> Durability | None:
        """Who is to confirm the effect of ``op``."""
        return self.options.durability if op in self._durable else None

    def kept(self, lane: bytes) -> bytes:
        """The name of the key that keeps a lane's last reply."""
        return self._kept + lane

    def key(self, part: str) -> bytes:
        """The name of one of the queue's keys."""
        return keys.key(self.engine.address.prefix, self.name, part, self.discipline)

    def command(
        self, op: str, args: tuple[Any, ...], conn: int, lane: Lane, number: bytes
    ) -> bytes:
        """The command that runs a script: in a lane, under a number, for a connection's client."""
        found = self._commands.get(op)
        if found is None or found.arguments != len(args):
            found = self._commands[op] = self._prepare(self.scripts[op], len(args))
        head, _, wants_connection, in_lane = found
        if wants_connection:
            args = (*args, conn)
        if in_lane:
            return pack((head, lane.id), (*args, number))
        return pack((head,), args)

    def number(self, op: str, lane: Lane) -> bytes:
        """The number of a new call of a script; none when it may be done twice."""
        if op not in self._numbered:
            return b""
        return lane.number(self._kept, self._keep)

    def _prepare(self, script: scripts.Script, arguments: int) -> _Command:
        names = [self.key(part) for part in script.keys]
        lane = b"-" * Lane.ID_SIZE if script.in_lane else b""
        if script.in_lane:
            names.append(self.kept(lane))
        parts: tuple[Any, ...] = ("EVALSHA", script.sha, len(names), *names)
        constant = pack_command(parts)
        start = constant.index(b"\r\n")
        more = arguments + script.wants_connection + script.in_lane
        return _Command(
            head=b"*%d" % (len(parts) + more) + constant[start:].removesuffix(lane + b"\r\n"),
            arguments=arguments,
            wants_connection=script.wants_connection,
            in_lane=script.in_lane,
        )

    def is_line(self, signal: str) -> bool:
        """Whether to wait for ``signal`` is to wait in line, where something is granted."""
        return signal in self._signals.lines

    def undo(self, signal: str) -> tuple[str, tuple[Any, ...]]:
        """The call that gives back what was granted in line."""
        return self._signals.lines[signal].undo

    def bell(self, ticket: str) -> bytes:
        """The name of the list on which one waiter alone waits."""
        return keys.bell(self.engine.address.prefix, self.name, ticket)

    def waiting(self, signal: str, timeout: float | None) -> Waiting:
        """The blocking command for a signal.

        The server does not end a wait in line that may last longer than one tick: the place in
        line would be lost.
        """
        limit = TICK if timeout is None else min(timeout, TICK)
        if signal in self._signals.lines:
            line = self._signals.lines[signal]
            command = ("BLMOVE", self.key(line.free), self.key(line.claim), "RIGHT", "LEFT")
            if timeout is None or timeout > TICK:
                return Waiting((*command, "0"), limit, False)
        elif signal in self._signals.watches:
            watched = self.key(self._signals.watches[signal])
            command = ("BLMOVE", watched, watched, "RIGHT", "RIGHT")
        else:
            bell = self.bell(signal.removeprefix(signals.BELL))
            command = ("BLMOVE", bell, self.key(signals.HEARD), "RIGHT", "LEFT")
        if self._signals.keeps_place:
            return Waiting((*command, "0"), limit, False)
        limit = max(round(limit, 3), 0.001)
        return Waiting((*command, f"{limit:.3f}"), limit + _CLOCK, True)

    def session(self) -> BlockingSession:
        return BlockingSession(self, self.engine.thread_pool)

    def asession(self) -> RedisSession:
        return RedisSession(self, self.engine.loop_pool)
