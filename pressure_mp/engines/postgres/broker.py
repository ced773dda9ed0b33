"""Requests to a database, not to a single queue: its queues, page by page, its samples, its
settings; and the notes of the processes of a host, the anonymous queues that they use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ...exceptions import PressureError
from ..contract import brokers as b
from ..contract import hosts as h
from ..contract.default_replies import default_reply
from ..contract.implementations import Implementations
from ..contract.replies import Outcome
from ..contract.requests import Request
from ..contract.session import Options
from ..host_sessions import Asked, Pools
from .notifications import connect_to_listen, wire_to_listen
from .outage import persist
from .packing import texts
from .pool import Pool
from .statements import Statement, Statements
from .wire import Row

#: A slot below the slots of all queues.
_FIRST = b"%d" % -(2**63)


class Database(Pools, Protocol):
    """The engine."""

    statements: Statements
    prefix: str

    def lanes(self) -> list[str]:
        """List the ids of the lanes of this process without a call."""


for_brokers: Implementations[PostgresBroker, [Pool, float | None]] = Implementations()


class PostgresBroker(Asked):
    """The broker, one schema of a database; for the processes of a host, with their notes."""

    def __init__(self, database: Database, options: Options, host: str = "") -> None:
        super().__init__(database, options)
        self._database = database
        self._host = host
        self._statements = database.statements
        self._prefix = database.prefix.encode()

    async def call(self, request: Request, pool: Pool, end: float | None) -> Any:
        do = for_brokers.get(type(request))
        return default_reply(request) if do is None else await do(self, request, pool, end)

    @for_brokers.does(b.ListQueues)
    async def _list(
        self, request: b.ListQueues, pool: Pool, end: float | None
    ) -> b.ListQueuesReply:
        after, limit = request
        asked = (self._prefix, after.encode() or _FIRST, b"%d" % limit)
        rows = await self._ask(pool, end, self._statements.list_queues, *asked)
        told = [json.loads(row[0] or b"") for row in rows]
        last = told[-1]["slot"] if len(told) == limit else ""
        return b.QueuePage(list(map(_read, told)), last)

    @for_brokers.does(b.ExamineServer)
    async def _examine(
        self, request: b.ExamineServer, pool: Pool, end: float | None
    ) -> b.ExamineServerReply:
        rows = await self._ask(pool, end, self._statements.server_settings)
        return [*_examine(json.loads(rows[0][0] or b"")), *await _examine_listening(pool)]

    @for_brokers.does(b.Identify)
    async def _identify(
        self, request: b.Identify, pool: Pool, end: float | None
    ) -> b.IdentifyReply:
        rows = await self._ask(pool, end, self._statements.identify)
        return (rows[0][0] or b"").decode() + f"-{self._database.prefix}"

    @for_brokers.does(b.AppendSample)
    async def _append(
        self, request: b.AppendSample, pool: Pool, end: float | None
    ) -> b.AppendSampleReply:
        data, *numbers = request
        noted = (self._prefix, data, *(b"%d" % number for number in numbers))
        rows = await self._ask(pool, end, self._statements.append_sample, *noted)
        return rows[0][0] == b"true"

    @for_brokers.does(b.ReadSamples)
    async def _read_samples(
        self, request: b.ReadSamples, pool: Pool, end: float | None
    ) -> b.ReadSamplesReply:
        since = b"%d" % request.after
        rows = await self._ask(pool, end, self._statements.read_samples, self._prefix, since)
        return [b.Sample(int(at or b""), told or b"") for at, told in rows]

    @for_brokers.does(h.Remember)
    async def _remember(
        self, request: h.Remember, pool: Pool, end: float | None
    ) -> h.RememberReply:
        await self._note(pool, end, "remember", (request.queue,))
        return Outcome.DONE

    @for_brokers.does(h.GetRemembered)
    async def _get_remembered(
        self, request: h.GetRemembered, pool: Pool, end: float | None
    ) -> h.GetRememberedReply:
        return await self._note(pool, end, "get_remembered")

    @for_brokers.does(h.Forget)
    async def _forget(self, request: h.Forget, pool: Pool, end: float | None) -> h.ForgetReply:
        await self._note(pool, end, "forget", request.queues)
        return Outcome.DONE

    @for_brokers.does(h.Leave)
    async def _leave(self, request: h.Leave, pool: Pool, end: float | None) -> h.LeaveReply:
        await self._note(pool, end, "leave", lanes=self._database.lanes())
        return Outcome.DONE

    async def _note(
        self,
        pool: Pool,
        end: float | None,
        op: str,
        queues: Sequence[h.QueueKey] = (),
        lanes: Sequence[str] = (),
    ) -> list[h.QueueKey]:
        names = texts(name for name, _ in queues)
        disciplines = texts(discipline for _, discipline in queues)
        asked = (self._prefix, self._host.encode(), op.encode(), names, disciplines, texts(lanes))
        rows = await self._ask(pool, end, self._statements.call_host, *asked)
        return [((name or b"").decode(), (kind or b"").decode()) for name, kind in rows]

    async def _ask(
        self, pool: Pool, end: float | None, statement: Statement, *params: bytes
    ) -> list[Row]:
        return await persist(pool, self._options, end, lambda again: (statement, params))


def _read(told: Mapping[str, Any]) -> b.QueueSummary:
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
        return b.of_tasks(told["name"], told["closed"], told["paused"], *counts)
    return b.QueueSummary(
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


#: The settings with which data can be lost if they are off: what happens then, and what to do.
_NOT_OFF = {
    "fsync": (
        "No write is sure to be on the disk: when the machine stops, the database may be damaged.",
        "Set fsync = on in postgresql.conf.",
    ),
    "full_page_writes": (
        "When the machine stops while a page is written, that page may be damaged.",
        "Set full_page_writes = on in postgresql.conf.",
    ),
    "synchronous_commit": (
        "When the server crashes, what came in the last three wal_writer_delay is lost: 0.6 s, "
        "unless that is set.",
        'Set it to on; or use durability="fsync" for the puts that must not be lost.',
    ),
}


def _examine(settings: Mapping[str, Any]) -> Iterator[b.Finding]:
    for name, (problem, advice) in _NOT_OFF.items():
        if settings[name] == "off":
            yield b.Finding(name, "off", problem, advice)
    if settings["standbys"] and not settings["synchronous_standby_names"]:
        yield b.Finding(
            "synchronous_standby_names",
            "empty",
            "If a standby that is behind is promoted, what it did not have is lost.",
            "Name a standby that confirms each commit.",
        )
    if settings["in_recovery"]:
        yield b.Finding(
            "pg_is_in_recovery()",
            "true",
            "This server is a standby: it refuses every change of a queue.",
            "Use the address of the primary.",
            loses=False,
        )
    if settings["idle_session_timeout"] not in (None, "0"):
        yield b.Finding(
            "idle_session_timeout",
            settings["idle_session_timeout"],
            "The server closes connections that are idle: clients connect again.",
            "Set it to 0 for the role that uses the queues.",
            loses=False,
        )


async def _examine_listening(pool: Pool) -> list[b.Finding]:
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
        return [b.Finding("listen", address.listen or "not set", problem, advice, loses=False)]
    finally:
        wire.close()
    return []
