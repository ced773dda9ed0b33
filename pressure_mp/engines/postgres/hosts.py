"""The notes of the processes of a host in a database: the anonymous queues that they use."""

from __future__ import annotations

from collections.abc import Sequence
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
from .outage import persist
from .packing import texts
from .pool import Pool
from .statements import Statements


class Database(Protocol):
    """The engine."""

    statements: Statements

    @property
    def prefix(self) -> str: ...

    @property
    def thread_pool(self) -> Pool: ...

    @property
    def loop_pool(self) -> Pool: ...

    def lanes(self) -> list[str]:
        """List the ids of the lanes of this process without a call."""


for_hosts: Implementations[PostgresHost, [Pool, float | None]] = Implementations()


class PostgresHost:
    """The notes of one host."""

    def __init__(self, database: Database, name: str, options: Options) -> None:
        self._database = database
        self._name = name
        self._options = options

    def session(self) -> HostSession:
        return HostSession(self, self._database.thread_pool)

    def asession(self) -> AsyncHostSession:
        return AsyncHostSession(self, self._database.loop_pool)

    async def call(self, request: Request, pool: Pool, end: float | None) -> Any:
        return await for_hosts[type(request)](self, request, pool, end)

    @for_hosts.does(Remember)
    async def _remember(self, request: Remember, pool: Pool, end: float | None) -> RememberReply:
        await self._ask(pool, end, "remember", (request.queue,))
        return Outcome.DONE

    @for_hosts.does(GetRemembered)
    async def _get_remembered(
        self, request: GetRemembered, pool: Pool, end: float | None
    ) -> GetRememberedReply:
        return await self._ask(pool, end, "get_remembered", ())

    @for_hosts.does(Forget)
    async def _forget(self, request: Forget, pool: Pool, end: float | None) -> ForgetReply:
        await self._ask(pool, end, "forget", request.queues)
        return Outcome.DONE

    @for_hosts.does(Leave)
    async def _leave(self, request: Leave, pool: Pool, end: float | None) -> LeaveReply:
        await self._ask(pool, end, "leave", (), self._database.lanes())
        return Outcome.DONE

    async def _ask(
        self,
        pool: Pool,
        end: float | None,
        op: str,
        queues: Sequence[QueueKey],
        lanes: Sequence[str] = (),
    ) -> list[QueueKey]:
        database = self._database
        params = (
            database.prefix.encode(),
            self._name.encode(),
            op.encode(),
            texts(name for name, _ in queues),
            texts(discipline for _, discipline in queues),
            texts(lanes),
        )
        statement = database.statements.call_host
        rows = await persist(pool, self._options, end, lambda again: (statement, params))
        return [_read_key(row) for row in rows]


def _read_key(row: Sequence[bytes | None]) -> QueueKey:
    """Read a queue's name and discipline."""
    name, discipline = row
    assert name is not None and discipline is not None  # noqa: PT018
    return name.decode(), discipline.decode()
