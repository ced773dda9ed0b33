"""The session of one operation at a database."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from typing import Any, NamedTuple

from ...exceptions import BrokerUnavailable, NotDurable, PressureError
from ...identity.client import client_id_bytes, ticket
from ..bells import Bell, ThreadBell
from ..blocking_coroutines import finish
from ..contract.default_replies import default_reply, reply_alone
from ..contract.forwarding import NotSettled
from ..contract.items import Put, Take, TakeBack, Taken
from ..contract.replies import Later, NoSpace, NoTask
from ..contract.requests import Request
from ..contract.session import ONE_TRY, TICK, SessionDefaults
from ..contract.tasks import AwaitTask
from ..retries import patience
from .binding import Binding
from .errors import MadeBefore
from .outage import Call, Calls, Failed, persist
from .packing import array, dump, load, read_array
from .pool import Lane, Pool
from .ways import Asked, Reply, Way, ways
from .wire import Row, Unconfirmed

#: Seconds between two polls of a waiting session where no notifications come.
_POLL = 0.1
#: Seconds to wait beyond the moment at which a task is due.
_GRACE = 0.002
#: Seconds for which the end of a session tries to give taken items back, or to leave its place in
#: line, if the server cannot be reached.
LAST_WORDS = 5.0

_NO_PARTS = array(())


class First(NamedTuple):
    """A call that was tried once: its lane and its number there; and its failure, unless it is
    known that nothing was done."""

    lane: Lane | None
    number: int
    failed: Failed | None


class BaseSession(SessionDefaults):
    """The common part of the sessions of asyncio tasks and, driven by ``finish``, of threads."""

    def __init__(self, binding: Binding, pool: Pool, bell: Bell) -> None:
        self.binding = binding
        #: See ``Session``.
        self.found: list[Any] | None = None
        self._pool = pool
        #: Makes the next call.
        self._calls: Calls = pool
        self._bell = bell
        self._lane: Lane | None = None
        self._is_lane_clean = True
        #: The session's ticket in line; empty before it asks for a place.
        self._ticket = ""
        self._placed = False
        #: Whether the server did not answer in time: then the end does not wait for it again.
        self._is_away = False
        #: The lane and the number of the last call that took items for good.
        self._taken: tuple[str, int] | None = None

    def _call(self, request: Request, end: float | None) -> Coroutine[Any, Any, Any]:
        # Each of the calls that are made together must have its reply before the next one.
        is_alone = self._calls is self._pool and not self._placed
        if is_alone and self.binding.quick.may_do(request):
            assert isinstance(request, (Put, Take))
            return self._call_quickly(request, end)
        return self._call_in_full(request, end)

    async def _call_quickly(self, request: Put | Take, end: float | None) -> Any:
        """Make a quick call; if that does nothing, make the full call, under the same number."""
        binding, quick = self.binding, self.binding.quick
        known = quick.known(request)
        lane, number = self._next_call()
        failed = None
        if type(request) is Take:
            self._taken = lane.id, number
        tried = time.monotonic()
        try:
            statement, params = quick.call(request, known, lane, number)
            limit = patience(end, None, binding.options.until)
            rows = await self._pool.execute(statement, params, limit)
            reply = quick.read(request, known, rows[0][0])
            if reply is not None:
                return reply
        except (BrokerUnavailable, MadeBefore) as error:
            failed = Failed(error, tried)
        except PressureError:
            self._taken = None  # a statement that fails does nothing
            raise
        return await self._call_in_full(request, end, First(lane, number, failed))

    async def _call_in_full(
        self, request: Request, end: float | None, first: First | None = None
    ) -> Any:
        way = ways.get(type(request))
        if way is None:
            return default_reply(request)
        if (found := reply_alone(request)) is not None:
            return found
        asked = way.ask(request, self.binding.discipline)
        durability = self.binding.options.durability
        if durability is not None:
            asked.args["durable"] = durability.replicas
        if way.reads:
            reply = await self._read(asked, end)
            if reply.status != "due":
                return way.read(request, reply)
        waits = self._asks_for_place(asked)
        listener = self.binding.listener
        listening = listener.number
        if isinstance(request, AwaitTask) and listening is None and listener.may_be_had:
            listening = await self._listening(end)  # first, as the task is told only once
        reply = await self._ask(way, request, asked, end, waits, listening, first)
        if isinstance(reply, NoSpace) and not waits and "waits" in asked.args:
            waits = True
            reply = await self._ask(way, request, asked, end, waits, listening)
        if isinstance(reply, Later) and waits and listening is None and listener.may_be_had:
            listening = await self._listening(end)
            if listening is not None:
                reply = await self._ask(way, request, asked, end, waits, listening)
        return reply

    def _asks_for_place(self, asked: Asked) -> bool:
        """Tell whether a call gives the session a place in line if it is not served. The first call
        of a put of tasks does not, since most queues of tasks have no bound."""
        if asked.op == "put" and self.binding.kind == "tasks":
            return "awaited" in asked.args or bool(self._ticket)
        return "waits" in asked.args

    async def _read(self, asked: Asked, end: float | None) -> Reply:
        binding = self.binding
        params = (
            binding.prefix.encode(),
            binding.kind.encode(),
            binding.name.encode(),
            binding.discipline.encode(),
            asked.op.encode(),
            dump(asked.args),
            array(asked.items),
        )
        rows = await persist(
            self._pool, binding.options, end, lambda again: (binding.statements.look_at, params)
        )
        return _reply(rows[0])

    async def _ask(
        self,
        way: Way,
        request: Request,
        asked: Asked,
        end: float | None,
        waits: bool,
        listening: int | None,
        first: First | None = None,
    ) -> Any:
        """Make a call; ``first`` is the first try, if there was one."""
        binding = self.binding
        lane, number, failed = first or (*(self._next_call() if way.once else (None, 0)), None)
        if way.takes:
            assert lane is not None
            self._taken = lane.id, number

        def call(again: bool) -> Call:
            if again:
                self._is_lane_clean = False
            return self._in_full(asked, waits, listening, lane, number, again)

        # Then it is tried for ``reconnect`` seconds, however short the caller would wait.
        settles = asked.op == "ack" or "calls" in asked.args
        if lane is not None and self._calls is self._pool:
            asked.args["flushes"] = True
        try:
            rows = await persist(self._calls, binding.options, end, call, settles, failed)
            while rows[0][-1] == b"true":
                assert lane is not None
                rows = await self._flush(rows, lane, number, asked, end, call)
        except PressureError as error:
            if isinstance(error, BrokerUnavailable):
                self._is_away = True
                self._lane = None  # the call may arrive later, and note its number
            # A statement that fails does nothing; but one before it may have.
            if way.takes and self._is_lane_clean and not isinstance(error, ConnectionError):
                self._taken = None
            raise
        *said, woken, _ = rows[0]
        for session in read_array(woken):
            binding.listener.ring(session.decode())
        told = way.read(request, _reply(said))
        if way.takes and not isinstance(told, Taken):
            self._taken = None
        keeps_place = (waits and isinstance(told, Later)) or isinstance(told, NotSettled)
        if asked.op in _PLACED and not keeps_place:
            self._placed = False
        if isinstance(rows, Unconfirmed) and asked.op in _CONFIRMED and not isinstance(told, Later):
            self._check_confirmed()
        return told

    async def _flush(
        self,
        rows: list[Row],
        lane: Lane,
        number: int,
        asked: Asked,
        end: float | None,
        call: Callable[[bool], Call],
    ) -> list[Row]:
        """Wait until the disk has a call; make it again if a crash of the server has undone it.
        Returns the rows of the call."""
        pool, options, statements = self._pool, self.binding.options, self.binding.statements
        durable = asked.args.get("durable")
        params = lane.id.encode(), b"%d" % number, None if durable is None else b"%d" % durable
        tried = time.monotonic()
        flushed = await persist(pool, options, end, lambda again: (statements.flush, params), True)
        if flushed[0][0] != b"true":
            failed = Failed(MadeBefore("a crash of the server may have undone it"), tried)
            return await persist(pool, options, end, call, True, failed)
        rows[0][-1] = b"false"
        return Unconfirmed(rows) if isinstance(flushed, Unconfirmed) else rows

    def _check_confirmed(self) -> None:
        """Raise NotDurable, if standbys were to confirm the call."""
        binding = self.binding
        durability = binding.options.durability
        if durability is not None and durability.replicas > 0:
            raise NotDurable(
                f"what was asked of queue {binding.name!r} is done, but not confirmed by the "
                "standbys: an administrator of the database ended the wait for them. To put the "
                "same again would add it a second time"
            )

    def _in_full(
        self,
        asked: Asked,
        waits: bool,
        listening: int | None,
        lane: Lane | None,
        number: int,
        again: bool,
    ) -> Call:
        binding = self.binding
        if waits:
            if not self._ticket:
                self._ticket = ticket()
                binding.listener.register(self._ticket, self._bell.ring)
            self._bell.silence()
        # A session that asks to wait may have a place, until it is served.
        placed, self._placed = self._placed, self._placed or waits
        statement, source = binding.statements.call, list[bytes]()
        if asked.settles is not None:
            statement, settling = binding.statements.forward, asked.settles
            source = [part.encode() for part in asked.source]
            source += settling.op.encode(), dump(settling.args), array(settling.items)
        return statement, [
            *source,
            binding.prefix.encode(),
            binding.kind.encode(),
            binding.name.encode(),
            binding.discipline.encode(),
            client_id_bytes(),
            b"%d" % binding.options.lease,
            self._ticket.encode(),
            b"t" if placed else b"f",
            None if listening is None else b"%d" % listening,
            None if lane is None else lane.id.encode(),
            b"%d" % number,
            b"t" if again else b"f",
            asked.op.encode(),
            dump(asked.args),
            array(asked.items),
            array(asked.keys) if asked.keys else _NO_PARTS,
        ]

    def _next_call(self) -> tuple[Lane, int]:
        lane = self._lane
        if lane is None:
            lane = self._lane = self._pool.lane()
        lane.number += 1
        return lane, lane.number

    async def _listening(self, end: float | None) -> int | None:
        """Start the listener, and return its number; None if it takes too long."""
        listener = self.binding.listener
        starting = listener.start()
        patience = listener.patience
        if end is not None:
            patience = min(patience, max(end - time.monotonic(), 0.0))
        await self._wait_for(starting, patience)
        return listener.number

    async def _wait_for(self, starting: Future[int | None], seconds: float) -> None:
        raise NotImplementedError

    async def _wait(self, later: Later, timeout: float | None) -> bool:
        # A place that is not renewed within its lease is lost.
        limit = min(TICK, max(self.binding.options.lease, 3000) / 3000)
        if self.binding.listener.number is None:
            limit = min(limit, _POLL)
        if isinstance(later, NoTask) and later.due is not None:
            limit = min(limit, later.due / 1000 + _GRACE)
        if timeout is not None:
            limit = min(limit, timeout)
        return await self._bell.wait(max(limit, 0.0))

    async def _end(self) -> None:
        if self._ticket:
            self.binding.listener.forget(self._ticket)
            if self._placed:
                await self._leave()
        lane, self._lane = self._lane, None
        if lane is not None and self._is_lane_clean:
            self._pool.take_lane_in(lane)

    async def _leave(self) -> None:
        binding = self.binding
        self._placed = False
        params = tuple(
            text.encode() for text in (binding.prefix, binding.kind, binding.name, self._ticket)
        )
        has_time = binding.options.reconnect and not self._is_away
        end = time.monotonic() + LAST_WORDS if has_time else ONE_TRY
        try:
            await persist(
                self._pool, binding.options, end, lambda again: (binding.statements.leave, params)
            )
        except PressureError:
            pass  # its lease ends it

    @property
    def taken(self) -> TakeBack | None:
        """The request that undoes the last call that took items for good, if there was one."""
        return TakeBack(self._taken) if self._taken is not None else None

    def interrupted(self) -> None:
        """Drop the lane: its last call may be under way."""
        self._is_lane_clean = False


#: The functions that give or take a place in line.
_PLACED = frozenset(("put", "take", "take_with_hold", "join", "await", "take_notices"))
#: The functions whose effect ``durability`` is for.
_CONFIRMED = frozenset(("put", "close", "ack", "ack_many"))


def _reply(row: list[bytes | None]) -> Reply:
    status, info, items = row
    assert status is not None
    return Reply(status.decode(), load(info), read_array(items))


class PostgresSession(BaseSession):
    """The session of a thread."""

    def __init__(self, binding: Binding, pool: Pool) -> None:
        super().__init__(binding, pool, ThreadBell())

    def call(self, request: Request, end: float | None = None) -> Any:
        return finish(self._call(request, end))

    def wait(self, later: Later, timeout: float | None) -> bool:
        return finish(self._wait(later, timeout))

    def end(self) -> None:
        finish(self._end())

    def take_over(self, ticket: str) -> None:
        """Take over the place in line of another session."""
        self._ticket, self._placed = ticket, bool(ticket)

    async def _wait_for(self, starting: Future[int | None], seconds: float) -> None:
        with suppress(TimeoutError):
            starting.result(seconds)
