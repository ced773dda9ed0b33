"""The notes of the processes of a host on a server: a set of the anonymous queues that they use."""

from __future__ import annotations

from typing import Any, Protocol

from ..contract.hosts import (
    Forget,
    ForgetReply,
    GetRemembered,
    GetRememberedReply,
    Leave,
    LeaveReply,
    QueueKey,
    Remember,
    RememberReply,
)
from ..contract.implementations import Implementations
from ..contract.replies import Outcome
from ..contract.requests import Request
from ..contract.session import Options
from ..host_sessions import AsyncHostSession, HostSession
from . import keys
from .binding import Server
from .host_registry import as_noted
from .plain_commands import PlainCommands
from .pool import Pool


class PooledServer(Server, Protocol):
    """A server, and this process's connections to it."""

    @property
    def thread_pool(self) -> Pool:
        """The connections that threads use."""

    @property
    def loop_pool(self) -> Pool:
        """The connections of the running event loop."""

    def lanes(self) -> list[bytes]:
        """List the ids of the lanes of all connections of this process."""


for_hosts: Implementations[RedisHost, [PlainCommands]] = Implementations()


class RedisHost:
    """The notes of one host."""

    def __init__(self, server: PooledServer, name: str, options: Options) -> None:
        self._server = server
        self._options = options
        self._key = keys.registry(server.address.prefix, name)

    def session(self) -> HostSession:
        return HostSession(self, PlainCommands(self._server.thread_pool, self._options))

    def asession(self) -> AsyncHostSession:
        return AsyncHostSession(self, PlainCommands(self._server.loop_pool, self._options))

    async def call(self, request: Request, commands: PlainCommands, end: float | None) -> Any:
        return await for_hosts[type(request)](self, request, commands)

    @for_hosts.does(Remember)
    async def _remember(self, request: Remember, commands: PlainCommands) -> RememberReply:
        await commands.request(self._slot, "SADD", self._key, as_noted(request.queue))
        return Outcome.DONE

    @for_hosts.does(GetRemembered)
    async def _get_remembered(
        self, request: GetRemembered, commands: PlainCommands
    ) -> GetRememberedReply:
        told = self._server.notes_of_host.take()
        if told is None:
            told = await commands.request(self._slot, "SMEMBERS", self._key)
        return [_read(noted) for noted in told]

    @for_hosts.does(Forget)
    async def _forget(self, request: Forget, commands: PlainCommands) -> ForgetReply:
        if request.queues:
            await commands.request(self._slot, "SREM", self._key, *map(as_noted, request.queues))
        return Outcome.DONE

    @for_hosts.does(Leave)
    async def _leave(self, request: Leave, commands: PlainCommands) -> LeaveReply:
        for slot, kept in self._kept(request.queues).items():
            await commands.request(slot, "UNLINK", *kept)
        return Outcome.DONE

    @property
    def _slot(self) -> int:
        return self._server.slot(self._key)

    def _kept(self, queues: Any) -> dict[int, list[bytes]]:
        """List the keys in which replies are kept for this process, by their slots."""
        lanes, found = self._server.lanes(), dict[int, list[bytes]]()
        for name, discipline in queues if lanes else ():
            kept = keys.kept(self._server.address.prefix, name, discipline)
            found.setdefault(self._server.slot(kept), []).extend(kept + lane for lane in lanes)
        return found


def _read(noted: bytes) -> QueueKey:
    discipline, _, name = noted.decode().partition(" ")
    return name, discipline
