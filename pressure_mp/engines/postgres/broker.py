"""Requests to a database, not to a single queue: its queues, page by page, its samples, its
settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...exceptions import PressureError
from ..contract.brokers import (
    AppendSample,
    AppendSampleReply,
    ExamineServer,
    ExamineServerReply,
    Finding,
    Identify,
    IdentifyReply,
    ListQueues,
    ListQueuesReply,
    QueuePage,
    QueueSummary,
    ReadSamples,
    ReadSamplesReply,
    Sample,
    of_tasks,
)
from ..contract.default_replies import default_reply
from ..contract.implementations import Implementations
from ..contract.requests import Request
from ..contract.session import Options
from ..host_sessions import AsyncHostSession, HostSession
from .hosts import Database
from .notifications import connect_to_listen, wire_to_listen
from .outage import persist
from .pool import Pool
from .statements import Statement
from .wire import Row

#: A slot below the slots of all queues.
_FIRST = b"%d" % -(2**63)


for_brokers: Implementations[PostgresBroker, [Pool, float | None]] = Implementations()


class PostgresBroker:
    """The broker: one schema of a database."""

    def __init__(self, database: Database, options: Options) -> None:
        self._database = database
        self._options = options
        self._statements = database.statements
        self._prefix = database.prefix.encode()

    def session(self) -> HostSession:
        return HostSession(self, self._database.thread_pool)

    def asession(self) -> AsyncHostSession:
        return AsyncHostSession(self, self._database.loop_pool)

    async def call(self, request: Request, pool: Pool, end: float | None) -> Any:
        do = for_brokers.get(type(request))
        return default_reply(request) if do is None else await do(self, request, pool, end)

    @for_brokers.does(ListQueues)
    async def _list(self, request: ListQueues, pool: Pool, end: float | None) -> ListQueuesReply:
        after, limit = request
        asked = (self._prefix, after.encode() or _FIRST, b"%d" % limit)
        rows = await self._ask(pool, end, self._statements.list_queues, *asked)
        told = [json.loads(row[0] or b"") for row in rows]
        last = told[-1]["slot"] if len(told) == limit else ""
        return QueuePage(list(map(_read, told)), last)

    @for_brokers.does(ExamineServer)
    async def _examine(
        self, request: ExamineServer, pool: Pool, end: float | None
    ) -> ExamineServerReply:
        rows = await self._ask(pool, end, self._statements.server_settings)
        return [*_examine(json.loads(rows[0][0] or b"")), *await _examine_listening(pool)]

    @for_brokers.does(Identify)
    async def _identify(self, request: Identify, pool: Pool, end: float | None) -> IdentifyReply:
        rows = await self._ask(pool, end, self._statements.identify)
        return (rows[0][0] or b"").decode() + f"-{self._database.prefix}"

    @for_brokers.does(AppendSample)
    async def _append(
        self, request: AppendSample, pool: Pool, end: float | None
    ) -> AppendSampleReply:
        data, *numbers = request
        noted = (self._prefix, data, *(b"%d" % number for number in numbers))
        rows = await self._ask(pool, end, self._statements.append_sample, *noted)
        return rows[0][0] == b"true"

    @for_brokers.does(ReadSamples)
    async def _read_samples(
        self, request: ReadSamples, pool: Pool, end: float | None
    ) -> ReadSamplesReply:
        since = b"%d" % request.after
        rows = await self._ask(pool, end, self._statements.read_samples, self._prefix, since)
        return [Sample(int(at or b""), told or b"") for at, told in rows]

    async def _ask(
        self, pool: Pool, end: float | None, statement: Statement, *params: bytes
    ) -> list[Row]:
        return await persist(pool, self._options, end, lambda again: (statement, params))


def _read(told: Mapping[str, Any]) -> QueueSummary:
    age = None if told["age"] is None else max(told["age"], 0) / 1000
    if told["discipline"] == "tasks":
        counts = (
            told["ways"],
            told["getting"],
            age,
            told["workers"],
            told["maxsize"],
            told["putting"],
        )
        return of_tasks(told["name"], told["closed"], told["paused"], *counts)
    return QueueSummary(
        name=told["name"],
        discipline=told["discipline"],
        length=told["length"],
        maxsize=told["bound"],
        closed=told["closed"],
        produced=told["produced"],
        consumed=told["consumed"],
        in_flight=told["in_flight"],
        rejected=told["rejected"],
        putting=told["putting"],
        getting=told["getting"],
        age=None,
        tasks={},
        returned=told["returned"],
    )


def _examine(settings: Mapping[str, Any]) -> Iterator[Finding]:
    if settings["fsync"] == "off":
        yield Finding(
            "fsync",
            "off",
            "No write is sure to be on the disk: when the machine stops, the database may be "
            "damaged.",
            "Set fsync = on in postgresql.conf.",
        )
    if settings["full_page_writes"] == "off":
        yield Finding(
            "full_page_writes",
            "off",
            "When the machine stops while a page is written, that page may be damaged.",
            "Set full_page_writes = on in postgresql.conf.",
        )
    if settings["synchronous_commit"] == "off":
        yield Finding(
            "synchronous_commit",
            "off",
            "When the server crashes, what came in the last three wal_writer_delay is lost: 0.6 s, "
            "unless that is set.",
            'Set it to on; or use durability="fsync" for the puts that must not be lost.',
        )
    if settings["standbys"] and not settings["synchronous_standby_names"]:
        yield Finding(
            "synchronous_standby_names",
            "empty",
            "If a standby that is behind is promoted, what it did not have is lost.",
            "Name a standby that confirms each commit.",
        )
    if settings["in_recovery"]:
        yield Finding(
            "pg_is_in_recovery()",
            "true",
            "This server is a standby: it refuses every change of a queue.",
            "Use the address of the primary.",
            loses=False,
        )
    if settings["idle_session_timeout"] not in (None, "0"):
        yield Finding(
            "idle_session_timeout",
            settings["idle_session_timeout"],
            "The server closes connections that are idle: clients connect again.",
            "Set it to 0 for the role that uses the queues.",
            loses=False,
        )


async def _examine_listening(pool: Pool) -> list[Finding]:
    """Find out whether notifications reach this process."""
    address = pool.address
    if address.listen == "no":
        return []
    wire = wire_to_listen(pool.kind_of_wire, address)
    try:
        await connect_to_listen(wire, address)
    except PressureError as error:
        problem = (
            f"Clients that wait receive no notifications, and ask ten times a second: {error}."
        )
        advice = "Name the server itself by ?listen=host:port in the URL, or say ?listen=no."
        return [Finding("listen", address.listen or "not set", problem, advice, loses=False)]
    finally:
        wire.close()
    return []
