"""The session of one operation: at most one connection that waits, and one beside it."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ...exceptions import PressureError
from ..contract.items import TakeBack
from ..contract.session import TICK
from ..retries import patience
from . import contents
from .binding import CONTENT_OPERATIONS, REJECTING, TAKING, RedisBinding
from .caller import Call, Waiter
from .durability import check, confirm
from .errors import AGAIN, STALE, NotDone
from .lanes import Lane
from .loading import send_again
from .outage import Outage
from .packing import pack_command
from .pool import Pool
from .refusals import refuse_wait, stale, translate
from .scripts import read_bare
from .statuses import DONE, Reply
from .wire import Carrier, Wire

#: How often the server is told to end a wait until its reply comes, and the seconds in between;
#: then the connection counts as lost, or the wait was interrupted before it was sent.
_MOST_UNBLOCKS = 40
_PAUSE = 0.05
#: The unit, in seconds, in which the server counts the time of a wait.
_CLOCK = 0.001
#: Seconds for the reply to a wait that is over; then twice as many, and so on.
_FIRST_PAUSE = 0.005
#: Milliseconds for which a bell rings; by then its waiter has made its call again by itself.
_RUNG = 2000
#: The calls that acknowledge a task: they are tried for ``reconnect`` seconds, however short the
#: caller would wait for the next task.
_SETTLING = frozenset(("ack", "ack_many", "next"))

#: The replies to a call that came twice.
CAME_AGAIN = (AGAIN, STALE)


@dataclass(slots=True, eq=False)
class SentCall:
    """A call that was sent, and whose reply is read later.

    It is sent alone, or behind a wait over the same connection: then the server does it when the
    wait ends.
    """

    op: str
    args: tuple[Any, ...]
    wire: Any
    number: bytes
    #: Whether a command that reads was sent before it.
    reads: bool = False
    #: Whether it is known to have been sent.
    is_sent: bool = False


class Attempt(NamedTuple):
    """A call that was made once, and its outcome: a reply or an OSError.

    No other operation uses the connection. It may have been given another lane meanwhile.
    """

    wire: Carrier
    lane: Lane
    number: bytes
    outcome: Any


class RedisSession:
    """The session of an asyncio task; and, through ``BlockingSession``, of a thread."""

    def __init__(self, binding: RedisBinding, pool: Pool) -> None:
        self.binding = binding
        self.waiter: Waiter | None = None
        self.renewed = 0.0
        self.wait_reply: Any = None
        self._pool = pool
        self._wire: Wire | None = None
        self._parked: str | None = None
        self._ends = 0.0  # the end of the outstanding wait at the server, on the monotonic clock
        #: Whether the server should have ended the wait, and no reply came.
        self._is_overdue = False
        #: The call that was sent behind the last wait, until its reply is read.
        self.behind: SentCall | None = None
        #: The request that undoes the last call that takes items, by its lane and its number.
        self.taken: TakeBack | None = None
        #: See ``Session``.
        self.found: list[Any] | None = None
        #: The token that the last wait granted, until the next call uses it.
        self.granted: str | None = None

    async def script(
        self,
        op: str,
        args: tuple[Any, ...] = (),
        end: float | None = None,
        attempt: Attempt | None = None,
    ) -> Reply:
        granted, self.granted = self.granted, None
        if op in self.binding.giving_back:
            if granted is not None and op == "release":
                args = (args[0], granted, *args[2:])  # the operation does not know of the grant
            giving = self.call_once(op, args, end, attempt)
            return await self._pool.uninterrupted(giving)
        return await self.call_once(op, args, end, attempt)

    async def call_once(
        self,
        op: str,
        args: tuple[Any, ...],
        end: float | None,
        attempt: Attempt | None = None,
    ) -> Reply:
        """Call until there is a reply: over a new connection, under the same number in the same
        lane, when the one in use is lost. ``attempt`` is the first try, if there was one.
        """
        outage = lane = None
        options, tried = self.binding.options, time.monotonic()
        while True:
            wire: Carrier | None = None
            try:
                last = outage.end if outage else end
                limit = patience(last, self._pool.silence, options.until)
                if attempt:
                    wire, lane, number, outcome = attempt
                    if isinstance(wire, Wire):
                        self._wire = wire
                    if isinstance(outcome, OSError):
                        raise outcome
                    reply = await self._understand(outcome, wire, op, args, number, limit)
                else:
                    wire = self._idle_wire(op, args) or await self._new_wire(op, args, limit)
                    if lane is None:
                        lane, number = wire.lane, self.binding.number(op, wire.lane)
                        if op in TAKING:
                            self.taken = TakeBack((lane, number))
                    if wire.lane is not lane:
                        if not isinstance(wire, Wire) or wire.unread is None:
                            self._pool.drop(wire)  # otherwise a call of its lane may be made again
                        wire.lane = lane
                    reply = await self._evaluate(wire, op, args, number, limit, outage is not None)
            except OSError as error:  # BrokerUnavailable too
                attempt = None
                self.lose(wire, error)
                # Without a connection nothing was sent, and a reply is an outcome.
                outage = outage or Outage(self._pool, options, end, tried)
                is_sent = wire is not None and not isinstance(error, NotDone)
                outage.must_finish |= is_sent or op in _SETTLING
                try:
                    await outage.ride_out(error)
                except BaseException:
                    self._discard()  # no caller would read the end of the wait
                    raise
            except PressureError as error:  # an error reply: the connection is as good as before
                if outage is not None and outage.must_finish:
                    error.took_nothing = False  # a try before may have
                    if op in TAKING and wire is not None:
                        self._leave_lane(wire)
                elif op in TAKING:
                    self.taken = None  # a script that fails does nothing
                self._give_wire_back(wire)
                raise
            except BaseException as error:
                self.lose(wire, error)
                raise
            else:
                self._note_reply(op, wire, reply)
                return reply

    def _leave_lane(self, wire: Carrier) -> None:
        """Have no more calls made in the lane of a connection: its last one may be undone."""
        self._pool.drop(wire)
        wire.lane = Lane()

    def _note_reply(self, op: str, wire: Carrier, reply: Reply) -> None:
        """Note the reply to a call, and the connection over which it came."""
        self._give_wire_back(wire)

    def _is_beside(self, op: str) -> bool:
        """Tell whether a call is not made over the operation's own connection."""
        return bool(self._parked or (op in REJECTING and self.taken))

    def _idle_wire(self, op: str, args: tuple[Any, ...]) -> Carrier | None:
        """Return the operation's own connection, or an idle one beside it; None when a new one is
        needed."""
        if self._is_beside(op):
            return self._pool.idle(self.binding.slot)
        if self._wire is None:
            self._wire = self._pool.idle(self.binding.slot)
        return self._wire

    async def _new_wire(self, op: str, args: tuple[Any, ...], limit: float | None) -> Carrier:
        wire = await self._pool.checkout(self.binding.slot, limit)
        if not self._is_beside(op):
            self._wire = wire
        return wire

    def _give_wire_back(self, wire: Carrier | None) -> None:
        if wire is not None and wire is not self._wire:
            self._pool.take_in(wire)

    def lose(self, wire: Carrier | None, error: BaseException) -> None:
        if wire is self._wire:
            self._wire = self._parked = None
        if wire is not None:
            self._pool.lose(wire, error)

    async def _evaluate(
        self,
        wire: Carrier,
        op: str,
        args: tuple[Any, ...],
        number: bytes,
        limit: float | None,
        again: bool = False,
    ) -> Reply:
        if op == "wake":
            return [
                await wire.request("CLIENT", "UNBLOCK", waiter, timeout=limit, has_effect=True)
                for waiter in args
            ]
        if op in CONTENT_OPERATIONS:
            assert isinstance(wire, Wire)
            return await contents.call(wire, self.binding, op, args, limit)
        if op == "take_back":
            lane, before, if_open = args
            return await self._take_back(wire, lane, before, if_open, limit)
        if op == "ring":
            return [await self._ring(wire, ticket, limit) for ticket in args]
        durability = self.binding.durability(op)
        if durability:
            await check(wire, self.binding, durability)
        command = self._pack(wire, op, args, number)
        reply = await wire.exchange(command, limit, self.binding.scripts[op].once)
        reply = await self._understand(reply, wire, op, args, number, limit, again)
        if durability and reply[0] == DONE:
            await confirm(wire, self.binding, durability, op)
        return reply

    def _pack(self, wire: Carrier, op: str, args: tuple[Any, ...], number: bytes) -> bytes:
        """Pack a call over a connection, for the client of the operation's own connection."""
        return self.binding.commands[op].pack(args, (self._wire or wire).id, wire.lane, number)

    async def _understand(
        self,
        reply: Any,
        wire: Carrier,
        op: str,
        args: tuple[Any, ...],
        number: bytes,
        limit: float | None,
        again: bool = False,
    ) -> Reply:
        """Return the status and values of a reply to a script."""
        if isinstance(reply, Exception):

            def send() -> Coroutine[Any, Any, Any]:
                command = self._pack(wire, op, args, number)
                return wire.exchange(command, limit, self.binding.scripts[op].once)

            reply = await send_again(reply, send, wire, self.binding, op, limit)
        if self.binding.scripts[op].bare:
            reply = read_bare(reply)
        if type(reply) is not list:
            raise await translate(reply, self.binding, op, args, wire)
        if reply[0] in CAME_AGAIN:
            if reply[0] == STALE or not again:  # a call that was never sent before has no reply yet
                raise stale(self.binding, wire.lane.id)
            return list(reply[1])
        return reply

    async def _take_back(
        self, wire: Carrier, lane: Lane, number: bytes, if_open: bool, limit: float | None
    ) -> Reply:
        """Undo the call with this number in a lane, which is the last one there."""
        command, args = self.binding.commands["take_back"], (int(if_open),)
        packed = command.pack(args, wire.id, lane, number.split()[0])
        send = partial(wire.exchange, packed, limit, has_effect=True)
        reply = await send_again(await send(), send, wire, self.binding, "take_back", limit)
        return await self._understand(reply, wire, "take_back", args, b"", limit)

    async def _ring(self, wire: Carrier, ticket: str | bytes, limit: float | None) -> Any:
        """Wake one waiter, even if it is only about to wait: by its ticket, or the name of its
        bell."""
        bell = ticket if isinstance(ticket, bytes) else self.binding.bell(ticket)
        ringing = ("LPUSH", bell, "1"), ("PEXPIRE", bell, _RUNG)
        if isinstance(wire, Wire):  # one round trip
            replies = await wire.exchange_large([[pack_command(one)] for one in ringing], limit)
        else:
            replies = [await wire.request(*one, timeout=limit, has_effect=True) for one in ringing]
        return replies[0]

    #: Operations of one event loop wait on one connection after the other.
    receives = False

    async def accept(self, op: str, args: tuple[Any, ...], safe: float) -> Reply | None:
        return None

    async def sleep(self, seconds: float) -> None:
        await self._pool.sleep(seconds)

    async def park(
        self, signal: str, timeout: float | None, then: Call | None = None, lasts: float = 0.0
    ) -> bool:
        """See ``Caller``; nothing is sent here before it is called."""
        if self._parked not in (None, signal):
            await self._abandon()
        limit = TICK if timeout is None else min(timeout, TICK)
        self.wait_reply = None
        try:
            if self._wire is None:
                self._wire = await self._pool.checkout(self.binding.slot)
            if self._parked is None:
                self._parked, self._is_overdue = signal, False
                command, limit, lasts = self.binding.waiting(signal, timeout, lasts)
                packed = b"" if then is None else self._pack_behind(self._wire, then)
                self._ends = time.monotonic() + lasts
                await self._wire.send(*command, behind=packed)
            left = max(self._ends - time.monotonic(), _CLOCK)
            ends = left <= limit + 2 * _CLOCK
            reply = await self._read_wait(self._wire, left if ends else limit, ends)
        except TimeoutError:
            return False
        except OSError as error:
            self.lose(self._wire, error)
            if not self.binding.options.reconnect:
                raise self._pool.translate(error) from error
            # The signal may be lost with the connection: for a client in line, the role itself. The
            # next call connects again.
            return self.binding.is_line(signal)
        except BaseException:  # cancelled, or KeyboardInterrupt: a granted turn goes back first
            await self._abandon()
            raise
        self._parked = None
        if isinstance(reply, Exception):
            await self.sleep(min(refuse_wait(reply, self.binding, signal), limit))
            return False
        self.wait_reply = reply
        if reply is not None and self.binding.is_line(signal):
            self.granted = signal
        return reply is not None

    def _pack_behind(self, wire: Wire, call: Call) -> bytes:
        command = self.binding.commands[call.op]
        # The wait may be long, and the reply is kept from the end of the call on.
        number = command.number(wire.lane, says_how_long=True)
        self.behind = SentCall(*call, wire, number)
        return command.pack(call.args, wire.id, wire.lane, number)

    async def end_wait(self) -> None:
        """End an outstanding wait, so that the server does the call behind it. Raises OSError."""
        wire = self._wire
        assert wire is not None
        async with self._pool.borrowed(self.binding.slot) as beside:
            if beside.node is not wire.node:
                raise ConnectionError("the queue moved, and so ended the wait")
            await self._unblock(wire, beside)
            self._parked = None

    async def _read_wait(self, wire: Wire, limit: float, ends: bool) -> Any:
        """Read the reply to the outstanding wait, which ``ends`` by then. The server checks its
        clock ten times a second, and whenever bytes arrive: this sends bytes, so that the wait ends
        on time."""
        try:
            return await wire.read(limit)
        except TimeoutError:
            if not ends:
                raise
        if self._is_overdue:  # and the server has replied to another call since
            raise ConnectionResetError("the server ended a wait, but sent no reply")
        pause = _FIRST_PAUSE
        while pause < TICK:
            await wire.send_nothing()
            try:
                return await wire.read(pause)
            except TimeoutError:
                pause *= 2
        self._is_overdue = True
        raise TimeoutError("the server does not reply after a wait that is over")

    async def _abandon(self) -> None:
        """End an outstanding wait, and give a role back that was granted meanwhile."""
        await self._pool.uninterrupted(self._end_wait())

    async def _end_wait(self) -> None:
        wire, signal = self._wire, self._parked
        if wire is None or signal is None:
            return
        try:
            async with self._pool.borrowed(self.binding.slot) as beside:
                if beside.node is not wire.node:  # the queue moved, which ended the wait
                    self._discard()
                    return
                granted = await self._unblock(wire, beside)
                self._parked = None
                if granted is not None and self.binding.is_line(signal):
                    op, args = self.binding.undo(signal)
                    number = self.binding.number(op, beside.lane)
                    await self._evaluate(beside, op, args, number, None)
        except (OSError, PressureError):
            self._discard()
        except BaseException:
            self._discard()
            raise

    async def _unblock(self, wire: Wire, beside: Carrier) -> Any:
        """End the outstanding wait, and return its reply. The server may receive the wait later
        than the command to end it, which goes over another connection: so the command is repeated
        until the reply comes."""
        for _ in range(_MOST_UNBLOCKS):
            await beside.request(
                "CLIENT", "UNBLOCK", wire.id, timeout=_PAUSE * _MOST_UNBLOCKS, has_effect=True
            )
            try:
                return await wire.read(_PAUSE)
            except TimeoutError:
                pass
        raise TimeoutError(f"the server did not end a wait after {_MOST_UNBLOCKS} requests")

    def _discard(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = self._parked = self.behind = None

    @property
    def has_sent(self) -> bool:
        return self.behind is not None and self._parked is not None

    @property
    def free_wire(self) -> Wire | None:
        """The operation's own connection, unless a wait is outstanding on it."""
        return None if self._parked else self._wire

    def interrupted(self) -> None:
        """Note an exception from outside: no further call goes over the operation's connection, in
        the lane of the interrupted call."""
        if not self._parked:
            self._discard()

    def keep(self, wire: Wire) -> None:
        """Make this connection the operation's own."""
        self._wire = wire

    @property
    def is_parked(self) -> bool:
        return self._parked is not None

    async def end(self) -> None:
        try:
            if self.waiter is not None:
                await self.waiter.end()
                self.waiter = None  # no cycle
        finally:
            if self.behind is not None:
                self._discard()  # so the server does not do the call behind it, unless it has
            if self._parked:
                await self._abandon()
            self.give_wire_back()

    def give_wire_back(self) -> None:
        """Give back the operation's connection, on which no reply is outstanding."""
        wire, self._wire = self._wire, None
        if wire is not None:
            self._pool.checkin(wire)
