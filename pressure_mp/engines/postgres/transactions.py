"""Sessions in a transaction of the caller's.

A request that changes something is staged there, and done when the transaction commits; a request
that only reads goes over a connection of this package.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from ...exceptions import ArgumentError, ArgumentTypeError
from ...identity.client import client_id
from ..blocking_coroutines import finish
from ..contract.contents import StoreChunks, SweepContents
from ..contract.items import Acknowledge, Put
from ..contract.replies import Later
from ..contract.requests import Request
from ..contract.session import SessionDefaults
from ..contract.tasks import AckTask, AckTasks, PutTasks
from ..own_connections import Wanted, unwrap
from . import task_ways
from .binding import AnyConnection, Binding, CallersTransaction
from .errors import refusal
from .loop_pool import LoopPool
from .loop_session import AsyncPostgresSession
from .outage import persist
from .pool import Pool
from .session import BaseSession, PostgresSession
from .statements import IDENTIFY, IDENTITY
from .ways import Asked, Reply, ways

_STAGED = (Put, StoreChunks, Acknowledge, PutTasks, AckTask, AckTasks)
_WANTED = Wanted((Connection, AsyncConnection), "psycopg 3")


class BaseTransactionSession(SessionDefaults):
    """The common part of the sessions of asyncio tasks and, driven by ``finish``, of threads."""

    def __init__(
        self, binding: Binding, pool: Pool, reader: BaseSession, connection: AnyConnection
    ) -> None:
        _check(connection, binding.name)
        self._binding = binding
        self._pool = pool
        self._reader = reader
        self._connection = connection
        #: The caller's transaction, once something was staged in it.
        self.transaction: CallersTransaction | None = None

    async def _execute(self, text: str, params: tuple[Any, ...]) -> tuple[Any, ...]:
        """Execute a statement in the caller's transaction, and return its only row."""
        raise NotImplementedError

    async def _call(self, request: Request, end: float | None) -> Any:
        if isinstance(request, SweepContents):
            return False  # the content is stored in the transaction
        if not isinstance(request, _STAGED):
            return await self._reader._call(request, end)
        if self._connection not in self._binding.known:
            await self._identify(end)
        if isinstance(request, PutTasks):
            request = await self._with_ids(request, end)
        way = ways[type(request)]
        asked = way.ask(request, self._binding.discipline)
        return way.read(request, await self._stage(asked))

    async def _identify(self, end: float | None) -> None:
        """Check that the connection leads to the queue's database."""
        binding, known = self._binding, self._binding.known
        if known.identity is None:
            rows = await persist(self._pool, binding.options, end, lambda again: (IDENTIFY, ()))
            known.identity = tuple((part or b"").decode() for part in rows[0])
        known.add(self._connection, await self._execute(IDENTITY, ()), binding.address.url)

    async def _with_ids(self, request: PutTasks, end: float | None) -> PutTasks:
        """Make the ids of tasks now, for good: the caller gets them before the commit."""
        number = sum(not id for id, _ in request.tasks)
        if not number:
            return request
        asked = task_ways.MAKE_IDS.ask((request.ids, number), self._binding.discipline)
        made = await self._reader._ask(task_ways.MAKE_IDS, request, asked, end, False, None)
        if not isinstance(made, list):
            return request  # the queue does not exist, as the next call says too
        ids = iter(made)
        return request._replace(tasks=[(id or next(ids), data) for id, data in request.tasks])

    async def _stage(self, asked: Asked) -> Reply:
        binding = self._binding
        args = {name: value for name, value in asked.args.items() if name != "waits"}
        durability = binding.options.durability
        if durability:  # otherwise the caller decides how durable it is
            args["durable"] = durability.replicas
        try:
            row = await self._execute(
                binding.statements.stage,
                (
                    binding.prefix,
                    binding.kind,
                    binding.name,
                    binding.discipline,
                    client_id(),
                    binding.options.lease,
                    asked.op,
                    json.dumps(args),
                    [bytes(part) for part in asked.items] or None,
                    [bytes(key) for key in asked.keys] or None,
                ),
            )
        except psycopg.Error as error:
            raise _as_of_queues(error, binding.address.url, binding.address.schema) from error
        status, info, items, xid = row
        if status == "isolation":
            raise ArgumentError(
                f"a call on queue {binding.name!r} cannot be part of this transaction, which "
                f"is {json.loads(info).upper()}: at its commit it would see the queue as it was "
                "when it began, and fail. Use READ COMMITTED"
            )
        if xid is not None:
            self.transaction = binding.known.transaction(self._connection, xid)
        return Reply(status, None if info is None else json.loads(info), items or [])

    async def _end(self) -> None:
        await self._reader._end()


class TransactionSession(BaseTransactionSession):
    """The session of a thread."""

    def __init__(self, binding: Binding, pool: Pool, given: object) -> None:
        connection = unwrap(given, _WANTED)
        if not isinstance(connection, Connection):
            raise ArgumentTypeError(
                "the queues for threads need a psycopg.Connection, not an AsyncConnection; those "
                "of pressure_mp.aio take one"
            )
        super().__init__(binding, pool, PostgresSession(binding, pool), connection)
        self._cursors: Connection[Any] = connection

    async def _execute(self, text: str, params: tuple[Any, ...]) -> tuple[Any, ...]:
        with Cursor(self._cursors, row_factory=tuple_row) as cursor:
            row = cursor.execute(text, params).fetchone()
        assert row is not None
        return _as_read(row)

    def call(self, request: Request, end: float | None = None) -> Any:
        return finish(self._call(request, end))

    def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"no call waits in a transaction: {later}")

    def end(self) -> None:
        finish(self._end())


class AsyncTransactionSession(BaseTransactionSession):
    """The session of an asyncio task."""

    def __init__(self, binding: Binding, pool: LoopPool, given: object) -> None:
        connection = unwrap(given, _WANTED)
        if not isinstance(connection, AsyncConnection):
            raise ArgumentTypeError(
                "the queues of asyncio need a psycopg.AsyncConnection, not a Connection; those "
                "for threads take one"
            )
        super().__init__(binding, pool, AsyncPostgresSession(binding, pool), connection)
        self._cursors: AsyncConnection[Any] = connection

    async def _execute(self, text: str, params: tuple[Any, ...]) -> tuple[Any, ...]:
        async with AsyncCursor(self._cursors, row_factory=tuple_row) as cursor:
            row = await (await cursor.execute(text, params)).fetchone()
        assert row is not None
        return _as_read(row)

    async def call(self, request: Request, end: float | None = None) -> Any:
        return await self._call(request, end)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"no call waits in a transaction: {later}")

    async def end(self) -> None:
        await self._end()


def _as_read(row: Sequence[Any]) -> tuple[Any, ...]:
    """Decode the texts of a row: psycopg has them as bytes where the encoding is not known
    (SQL_ASCII). Contents of queues are in arrays, and stay bytes."""
    return tuple(one.decode() if isinstance(one, bytes) else one for one in row)


def _check(connection: AnyConnection, name: str) -> None:
    """Raise ArgumentError unless a transaction is under way, or begins with the next statement;
    ``name`` is the queue's."""
    refused = f"a call on queue {name!r} cannot be part of a transaction of this connection: "
    if connection.closed:
        raise ArgumentError(refused + "it is closed")
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise ArgumentError(refused + "its transaction has failed; roll it back")
    if status == TransactionStatus.IDLE and connection.autocommit:
        raise ArgumentError(
            refused + "it is in autocommit mode, and no transaction has begun; use connection= "
            "within `with connection.transaction():`, or without autocommit (Django: within "
            "transaction.atomic())"
        )


def _as_of_queues(error: Any, shown: str, schema: str) -> BaseException:
    """Return the error to raise when a statement of this package failed in a caller's transaction:
    an error of this package if the schema, or a right to it, is missing; otherwise psycopg's own,
    as for any other statement of the caller's."""
    state = error.sqlstate or ""
    if state in ("3F000", "42883", "42501"):
        return refusal(state, error.diag.message_primary or str(error), shown, schema)
    found: BaseException = error
    return found
