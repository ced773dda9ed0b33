"""What the processes of a host note on a server: a set of the anonymous queues that they use."""

from __future__ import annotations

from typing import Any, Protocol

from ...exhaustive import assert_never
from ..contract.hosts import Forget, GetRemembered, Leave, QueueKey, Remember
from ..contract.replies import Later, NoItem, Outcome
from ..contract.requests import HostRequest
from ..contract.session import Options
from ..finishing import finish
from . import keys
from .address import RedisAddress
from .noted import Noted, as_noted
from .plain_commands import PlainCommands
from .pool import Pool
from .rounds import Rounds


class Server(Protocol):
    """The engine."""

    address: RedisAddress

    noted: Noted
    """What was noted for this host."""

    @property
    def thread_pool(self) -> Pool:
        """The connections that threads use."""

    @property
    def loop_pool(self) -> Pool:
        """The connections of the running event loop."""

    def slot(self, key: bytes) -> int:
        """Where a key is, for the pools' route."""

    def rounds(self, name: str, discipline: str) -> Rounds:
        """Return the rounds of all operations of this process that look at a queue."""

    def lanes(self) -> list[bytes]:
        """The ids of the lanes of all connections of this process."""


class Asked(Protocol):
    """A host, or the broker."""

    async def call(self, request: Any, commands: PlainCommands) -> Any:
        """Do it."""


class RedisHost:
    """One host, as its processes note things for it."""

    def __init__(self, server: Server, name: str, options: Options) -> None:
        self._server = server
        self._options = options
        self._key = keys.registry(server.address.prefix, name)

    def session(self) -> HostSession:
        return HostSession(self, PlainCommands(self._server.thread_pool, self._options))

    def asession(self) -> AsyncHostSession:
        return AsyncHostSession(self, PlainCommands(self._server.loop_pool, self._options))

    async def call(self, request: HostRequest, commands: PlainCommands) -> Any:
        """Do it."""
        slot = self._server.slot(self._key)
        match request:
            case Remember(queue):
                await commands.request(slot, "SADD", self._key, as_noted(queue))
            case GetRemembered():
                told = self._server.noted.take()
                if told is None:
                    told = await commands.request(slot, "SMEMBERS", self._key)
                return [_read(noted) for noted in told]
            case Forget(queues):
                if queues:
                    await commands.request(slot, "SREM", self._key, *map(as_noted, queues))
            case Leave(queues):
                for slot, kept in self._kept(queues).items():
                    await commands.request(slot, "UNLINK", *kept)
            case _:
                assert_never(request)
        return Outcome.DONE

    def _kept(self, queues: Any) -> dict[int, list[bytes]]:
        """The keys in which replies are kept for this process, by their slots."""
        lanes, found = self._server.lanes(), dict[int, list[bytes]]()
        for name, discipline in queues if lanes else ():
            kept = keys.kept(self._server.address.prefix, name, discipline)
            found.setdefault(self._server.slot(kept), []).extend(kept + lane for lane in lanes)
        return found


def _read(noted: bytes) -> QueueKey:
    discipline, _, name = noted.decode().partition(" ")
    return name, discipline


class _Session:
    """Nobody waits here, and nothing is taken."""

    found: list[Any] | None = None
    taken = None

    def __init__(self, asked: Asked, commands: PlainCommands) -> None:
        self._asked = asked
        self._commands = commands

    def send_ahead(
        self, request: object, later: NoItem | None = None, timeout: float = 0.0
    ) -> bool:
        """It is not sent before it is called."""
        return False

    def interrupted(self) -> None:
        """Nothing is half done: the connection is lost with the call."""


class HostSession(_Session):
    """For a thread."""

    def call(self, request: Any, end: float | None = None) -> Any:
        return finish(self._asked.call(request, self._commands))

    def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"{later} is no reply of a host or of a broker")

    def end(self) -> None:
        """Nothing is held."""


class AsyncHostSession(_Session):
    """For an asyncio task."""

    async def call(self, request: Any, end: float | None = None) -> Any:
        return await self._asked.call(request, self._commands)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"{later} is no reply of a host or of a broker")

    async def end(self) -> None:
        """Nothing is held."""
