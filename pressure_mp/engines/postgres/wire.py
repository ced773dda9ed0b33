"""A connection over psycopg's libpq: one implementation for threads and event loops.

A thread drives these coroutines by :func:`finish`: its wires block, and never suspend.
"""

from __future__ import annotations

import asyncio
import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import SystemRandom
from typing import Any

from psycopg import OperationalError, pq
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PollingStatus

from ...exceptions import AddressError, PressureError, WrongServerError
from ...hidden import without_frames
from ...polling import Poll, new_poll
from ..cancelled_calls import postponed
from ..contract.cancellation import mark_as_unknown
from ..lines import set_once
from ..silence import GRACE, SILENCE, unconfirmed
from .errors import DEPENDED_ON, ConnectionLost, refusal, unreachable
from .schema import SETTINGS
from .statements import Statement

#: Each statement is a transaction of its own, in which each step sees all earlier commits.
_OPTIONS = " ".join(
    "-c {}={}".format(setting, value.replace(" ", "\\ "))
    for setting, value in {"default_transaction_isolation": "read committed", **SETTINGS}.items()
)
#: Seconds after which the operating system gives up a host that confirms no data.
_GONE = 10
#: Seconds to connect in order to ask for a silent connection, and for the answer.
_LIMIT = 5.0
#: The options of libpq of which each host has its own.
_PLACE = b"host", b"hostaddr", b"port"
_WAITS_FOR_CLIENT = Statement(
    b"", b"SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Client'", (0,)
)
_SILENT = "timeout: the server says nothing"
_LOST = "it is silent: the server, asked over another one, waits for bytes of this one"


#: One row; None is SQL's NULL.
Row = list["bytes | None"]


class Unconfirmed(list[Row]):
    """Rows of a call that is done, but that its standbys have not confirmed: an administrator ended
    the wait for them."""


class Wire(ABC):
    """A connection that one call uses at a time. Each reply is awaited to its end, or the
    connection is closed."""

    def __init__(self, shown: str, schema: str, prepares: bool) -> None:
        #: The URL of the server, without passwords.
        self.shown = shown
        self._schema = schema
        self._prepares = prepares
        self._prepared: set[bytes] = set()
        self._pid = os.getpid()
        self.pgconn: Any = None
        self._is_unconfirmed = False
        self._conninfo = ""

    @abstractmethod
    async def ready(self, reads: bool, timeout: float | None) -> bool:
        """Wait until it can be read, or else written; return False when the time is over."""

    async def connect(self, conninfo: str, timeout: float) -> None:
        """Connect to the first of the hosts that can be used. Raises BrokerUnavailable;
        WrongServerError when another try would not help."""
        self._conninfo = conninfo
        end = time.monotonic() + timeout
        said: list[str] = []
        try:
            hosts = _each_host(conninfo)
            for left, host in zip(range(len(hosts), 0, -1), hosts, strict=True):
                # A host that says nothing leaves time for the hosts behind it.
                share = max(end - time.monotonic(), 0.0) / left
                if (problem := await self._connect_to(host, share)) is None:
                    break
                said.append(problem)
                error = unreachable("\n".join(said), self.shown)
                if left == 1 or isinstance(error, WrongServerError):
                    raise error
            self.pgconn.nonblocking = 1
            self.pgconn.notice_handler = self._note
        except BaseException as error:
            self.close()
            raise without_frames(error) from None

    async def _connect_to(self, host: bytes, timeout: float) -> str | None:
        """Connect to one host. Returns the problem, None if there is none."""
        end = time.monotonic() + timeout
        self.close()
        self.pgconn = pgconn = pq.PGconn.connect_start(host)
        while pgconn.status != ConnStatus.BAD:
            state = pgconn.connect_poll()
            if state == PollingStatus.OK:
                return None
            if state == PollingStatus.FAILED:
                break
            if not await self.ready(
                state == PollingStatus.READING, max(end - time.monotonic(), 0.0)
            ):
                where = f"{pgconn.host.decode()}, port {pgconn.port.decode()}"
                return f"timeout: no answer from {where} within {timeout:.3g} s"
        return str(pgconn.get_error_message())

    def _note(self, notice: Any) -> None:
        """Note a notice of the server that the wait for its standbys was ended: its source function
        tells that in any language."""
        if notice.error_field(DiagnosticField.SOURCE_FUNCTION) == b"SyncRepWaitForLSN":
            self._is_unconfirmed = True

    def _marked(self, rows: list[Row]) -> list[Row]:
        return Unconfirmed(rows) if self._is_unconfirmed else rows

    @property
    def is_usable(self) -> bool:
        """Whether the connection is open, as far as is known without asking the server."""
        pgconn = self.pgconn
        if pgconn is None or pgconn.status != ConnStatus.OK:
            return False
        poll = new_poll()
        poll.register(pgconn.socket, select.POLLIN)
        return not poll.poll(0)

    async def execute(
        self, statement: Statement, params: Sequence[bytes | None], timeout: float | None
    ) -> list[Row]:
        """Execute a statement, and return the rows; Unconfirmed, where that is known. Raises the
        errors of :mod:`errors`; ConnectionLost when no reply came.

        The first cancellation is postponed until the reply is there: items that a call took must
        not be lost with its reply.
        """
        end = None if timeout is None else time.monotonic() + timeout
        self._is_unconfirmed = False
        try:
            if self._is_to_prepare(statement):
                self._prepare(statement)
                await self._result(end)
                self._prepared.add(statement.name)
            self._send(statement, params)
            return self._marked(await self._result(end))
        except OperationalError as error:
            raise self._lost(error) from None

    async def execute_together(
        self, calls: Sequence[tuple[Statement, Sequence[bytes | None]]], timeout: float | None
    ) -> list[list[Row]]:
        """Execute several calls, in one transaction and in this order: if one of them raises, none
        was done."""
        end = None if timeout is None else time.monotonic() + timeout
        self._is_unconfirmed = False
        new = {call[0].name: call[0] for call in calls}
        preparing = [statement for statement in new.values() if self._is_to_prepare(statement)]
        replies: list[Any] = []
        try:
            self.pgconn.enter_pipeline_mode()
            for statement in preparing:
                self._prepare(statement)
            for call in calls:
                self._send(*call)
            self.pgconn.pipeline_sync()
            await self._wait_while(partial(self._lacks, replies), end)
            self.pgconn.exit_pipeline_mode()
            for statement, reply in zip(preparing, replies, strict=False):
                self._rows(reply)
                self._prepared.add(statement.name)  # even if the next step fails
            return [self._marked(self._rows(reply)) for reply in replies[len(preparing) :]]
        except OperationalError as error:
            raise self._lost(error) from None

    def _lacks(self, replies: list[Any]) -> bool:
        """Tell whether a part of the sent commands has no reply yet."""
        pgconn = self.pgconn
        while not pgconn.is_busy():
            reply = pgconn.get_result()
            if reply is None:  # behind each
                if pgconn.status != ConnStatus.OK:
                    raise OperationalError(pgconn.get_error_message())
            elif reply.status == ExecStatus.PIPELINE_SYNC:
                return False
            else:
                replies.append(reply)
        return True

    def _is_to_prepare(self, statement: Statement) -> bool:
        return self._prepares and statement.name not in self._prepared

    def _prepare(self, statement: Statement) -> None:
        self.pgconn.send_prepare(statement.name, statement.text)

    def _send(self, statement: Statement, params: Sequence[bytes | None]) -> None:
        name, text, formats = statement
        if self._prepares:
            self.pgconn.send_query_prepared(name, params, formats, 1)
        else:
            self.pgconn.send_query_params(text, params, None, formats, 1)

    def _lost(self, error: OperationalError) -> ConnectionLost:
        self.close()
        return ConnectionLost(f"the connection to {self.shown} broke: {error}")

    async def execute_text(self, text: str, timeout: float | None = None) -> None:
        """Execute several statements in one transaction, and drop their rows."""
        end = None if timeout is None else time.monotonic() + timeout
        try:
            self.pgconn.send_query(text.encode())
            await self._result(end)
        except OperationalError as error:
            raise self._lost(error) from None

    async def _result(self, end: float | None) -> list[Row]:
        """Return the rows of the statement that was sent."""
        await self._wait_while(self.pgconn.is_busy, end)
        found: Any = None
        while (result := self.pgconn.get_result()) is not None:
            fails = result.status == ExecStatus.FATAL_ERROR
            if found is None or (fails and found.status != ExecStatus.FATAL_ERROR):
                found = result
        return self._rows(found)

    @abstractmethod
    async def _wait_while(self, lacks: Callable[[], bool], end: float | None) -> None:
        """Send all, and read until the reply is there. Raises OperationalError when the time is
        over."""

    async def _flush(self, end: float | None) -> None:
        while self.pgconn.flush():
            left = None if end is None else max(end - time.monotonic(), 0.0)
            if not await self.ready(False, left):
                raise OperationalError("the server accepts no more bytes")

    async def _wait_on(self, end: float | None) -> None:
        """Check the connection when nothing came for some time: raise OperationalError when the
        time is over, or when bytes were dropped on the way. A large call over a slow link is not
        lost: the server's host confirms more and more of it."""
        if end is not None and time.monotonic() >= end:
            raise OperationalError(_SILENT)
        own, before = self.pgconn.socket, unconfirmed(self.pgconn.socket)
        other = type(self)(self.shown, self._schema, False)
        is_waited_for = await waits_for_client(self.pgconn.backend_pid, other, self._conninfo)
        if is_waited_for and not await self.ready(True, GRACE) and unconfirmed(own) >= before:
            raise OperationalError(_LOST)

    def _rows(self, found: Any) -> list[Row]:
        """Return the rows of one result, or raise its error."""
        if found.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            columns = range(found.nfields)
            return [[found.get_value(row, n) for n in columns] for row in range(found.ntuples)]
        state = found.error_field(DiagnosticField.SQLSTATE)
        message = found.error_field(DiagnosticField.MESSAGE_PRIMARY) or b""
        if not state:
            raise OperationalError(found.get_error_message())
        if found.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) in (b"FATAL", b"PANIC"):
            raise OperationalError(message.decode(errors="replace"))  # perhaps behind a commit
        if state == DEPENDED_ON:
            message += b": " + (found.error_field(DiagnosticField.MESSAGE_DETAIL) or b"")
        raise refusal(state.decode(), message.decode(errors="replace"), self.shown, self._schema)

    def close(self) -> None:
        """Close the connection. In a forked child the parent's connection stays open."""
        pgconn, self.pgconn = self.pgconn, None
        if pgconn is None:
            return
        if self._pid == os.getpid():
            pgconn.finish()
        else:
            with suppress(OSError, OperationalError):
                os.close(pgconn.socket)


async def waits_for_client(backend: int, other: Wire, conninfo: str) -> bool:
    """Tell whether a backend waits for its client. Ask over another wire, connected and closed
    here. Blocks for at most 5 s to connect, and 5 s for the answer.

    The server answers other connections while a call waits for a lock, so its answer there does not
    show that the call is lost. But if the backend waits for its client (``pg_stat_activity``, the
    PostgreSQL manual, "The Cumulative Statistics System") while the client waits for a reply, bytes
    between them were dropped: something on the way drops them, and the client sees no end.

    False where this is not known: a pooler that gives each transaction another backend hides it.
    """
    try:
        await other.connect(conninfo, _LIMIT)
        return bool(await other.execute(_WAITS_FOR_CLIENT, (b"%d" % backend,), _LIMIT))
    except PressureError:
        return False
    finally:
        other.close()


def _each_host(conninfo: str) -> list[bytes]:
    """Return the connection string of each host, with the options of this package; the URL's own
    options stay. libpq would try the next host when one refuses, but not when one says nothing."""
    try:
        parsed = pq.Conninfo.parse(conninfo.encode())
    except OperationalError as error:
        text = " ".join(str(error).split())
        raise AddressError(f"a PostgreSQL URL that libpq cannot read: {text}") from None
    said = {one.keyword: one.val for one in parsed if one.val is not None}
    options = said.get(b"options", b"").decode()
    said[b"options"] = f"{_OPTIONS} {options}".strip().encode()
    said[b"client_encoding"] = b"UTF8"
    said.setdefault(b"fallback_application_name", b"pressure_mp")
    for name, value in (
        (b"keepalives_idle", _GONE // 2),
        (b"keepalives_interval", 1),
        (b"keepalives_count", _GONE // 2),
        (b"tcp_user_timeout", _GONE * 1000),
    ):
        said.setdefault(name, b"%d" % value)
    places = {name: said[name].split(b",") for name in _PLACE if name in said}
    number = max((len(values) for values in places.values()), default=1)
    if {len(values) for values in places.values()} - {1, number}:
        return [_written(said)]  # libpq names the mistake
    hosts = [
        _written(said | {name: values[n % len(values)] for name, values in places.items()})
        for n in range(number)
    ]
    if said.get(b"load_balance_hosts") == b"random":
        SystemRandom().shuffle(hosts)
    return hosts


def _written(said: dict[bytes, bytes]) -> bytes:
    return b" ".join(
        keyword + b"='" + value.replace(b"\\", b"\\\\").replace(b"'", b"\\'") + b"'"
        for keyword, value in said.items()
    )


def _until_silent(end: float | None) -> float:
    """Return the seconds until the time is over, or until the server is asked."""
    return SILENCE if end is None else min(max(end - time.monotonic(), 0.0), SILENCE)


class BlockingWire(Wire):
    """A connection for threads."""

    _reply: Poll | None = None

    async def ready(self, reads: bool, timeout: float | None) -> bool:
        poll = new_poll()
        poll.register(self.pgconn.socket, select.POLLIN if reads else select.POLLOUT)
        return bool(poll.poll(_milliseconds(timeout)))

    async def _wait_while(self, lacks: Callable[[], bool], end: float | None) -> None:
        pgconn = self.pgconn
        if pgconn.flush():
            await self._flush(end)
        reply = self._reply
        if reply is None:  # the socket stays the same from now on
            reply = self._reply = new_poll()
            reply.register(pgconn.socket, select.POLLIN)
        while lacks():
            if not reply.poll(_milliseconds(_until_silent(end))):
                await self._wait_on(end)
            pgconn.consume_input()


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


class LoopWire(Wire):
    """A connection for an event loop."""

    async def _wait_while(self, lacks: Callable[[], bool], end: float | None) -> None:
        await self._flush(end)
        cancelled: asyncio.CancelledError | None = None
        try:
            while lacks():
                try:
                    if not await self.ready(True, _until_silent(end)):
                        await self._wait_on(end)
                except asyncio.CancelledError as error:
                    if cancelled is not None:
                        mark_as_unknown(error)
                        raise
                    cancelled = error
                    continue
                self.pgconn.consume_input()
        finally:
            if cancelled is not None:
                postponed.add(cancelled)

    async def ready(self, reads: bool, timeout: float | None) -> bool:
        loop = asyncio.get_running_loop()
        socket = self.pgconn.socket
        done: asyncio.Future[bool] = loop.create_future()
        add, remove = (
            (loop.add_reader, loop.remove_reader)
            if reads
            else (loop.add_writer, loop.remove_writer)
        )
        timer = None if timeout is None else loop.call_later(timeout, set_once, done, False)
        add(socket, set_once, done, True)
        try:
            return await done
        finally:
            remove(socket)
            if timer is not None:
                timer.cancel()
