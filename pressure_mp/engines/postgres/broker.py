"""A database as a whole: which queues it has, page by page, and how its server is set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...exceptions import PressureError
from ...exhaustive import assert_never
from ..contract.brokers import (
    AppendSample,
    DamagedPage,
    ExamineServer,
    FindDamaged,
    Finding,
    Identify,
    ListQueues,
    MayGet,
    QueuePage,
    QueueSummary,
    ReadSamples,
    RenewAll,
    Sample,
    of_tasks,
)
from ..contract.requests import BrokerRequest
from ..contract.session import Options
from .hosts import AsyncHostSession, Database, HostSession
from .notifications import connect_to_hear, wire_to_hear
from .outage import persist
from .pool import Pool
from .statements import Statement
from .wire import Row

#: Before the slot of every queue.
_FIRST = b"%d" % -(2**63)


class PostgresBroker:
    """One schema."""

    def __init__(self, database: Database, options: Options) -> None:
        self._database = database
        self._options = options
        self._prefix = database.prefix.encode()

    def session(self) -> HostSession:
        return HostSession(self, self._database.thread_pool)

    def asession(self) -> AsyncHostSession:
        return AsyncHostSession(self, self._database.loop_pool)

    async def call(self, request: BrokerRequest, pool: Pool, end: float | None) -> Any:
        """Do it."""
        statements = self._database.statements
        match request:
            case ListQueues(after, limit):
                asked = (self._prefix, after.encode() or _FIRST, b"%d" % limit)
                rows = await self._ask(pool, end, statements.list_queues, *asked)
                told = [json.loads(row[0] or b"") for row in rows]
                last = told[-1]["slot"] if len(told) == limit else ""
                return QueuePage(list(map(_read, told)), last)
            case FindDamaged():
                return DamagedPage([], "")
            case ExamineServer():
                rows = await self._ask(pool, end, statements.server_settings)
                return [*_examine(json.loads(rows[0][0] or b"")), *await _examine_hearing(pool)]
            case Identify():
                rows = await self._ask(pool, end, statements.identify)
                return (rows[0][0] or b"").decode() + f"-{self._database.prefix}"
            case AppendSample(data, every, keep, ttl):
                numbers = (b"%d" % every, b"%d" % keep, b"%d" % ttl)
                noted = (self._prefix, data, *numbers)
                rows = await self._ask(pool, end, statements.append_sample, *noted)
                return rows[0][0] == b"true"
            case ReadSamples(after):
                since = b"%d" % after
                rows = await self._ask(pool, end, statements.read_samples, self._prefix, since)
                return [Sample(int(at or b""), told or b"") for at, told in rows]
            case RenewAll(queues) | MayGet(queues):
                return [None] * len(queues)
            case _:
                assert_never(request)

    async def _ask(
        self, pool: Pool, end: float | None, statement: Statement, *params: bytes
    ) -> list[Row]:
        return await persist(pool, self._options, end, lambda again: (statement, params))


def _read(told: Mapping[str, Any]) -> QueueSummary:
    age = None if told["age"] is None else max(told["age"], 0) / 1000
    if told["discipline"] == "tasks":
        return of_tasks(told["name"], told["closed"], told["ways"], told["getting"], age)
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
            "Nothing is sure to be on the disk: when the machine stops, the database may be "
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


async def _examine_hearing(pool: Pool) -> list[Finding]:
    """Whether notifications are heard from here."""
    address = pool.address
    if address.listen == "no":
        return []
    wire = wire_to_hear(pool.kind_of_wire, address)
    try:
        await connect_to_hear(wire, address)
    except PressureError as error:
        problem = (
            f"Clients that wait receive no notifications, and ask ten times a second: {error}."
        )
        advice = "Name the server itself by ?listen=host:port in the URL, or say ?listen=no."
        return [Finding("listen", address.listen or "not set", problem, advice, loses=False)]
    finally:
        wire.close()
    return []
