"""The session of a thread: calls that succeed at once, and a longer session for everything else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..blocking_coroutines import finish
from ..contract.items import TakeBack
from ..contract.replies import Later
from ..contract.requests import Request
from ..retries import patience
from .binding import TAKING, RedisBinding
from .blocking_wire import BlockingWire
from .caller import Call, Waiter
from .loading import is_missing, load
from .one_script import FirstScript, OneScript, PlainRead, ReadFirst, bells_in
from .pool import Pool
from .received_items import accept
from .requests import implementations
from .scripts import read_bare
from .session import CAME_AGAIN, Attempt, RedisSession, SentCall
from .statuses import DECLINED, DONE, Reply

#: The statuses with which the first call of an operation leaves its connection idle.
_AT_ONCE = (DONE, DECLINED)


class BlockingSession:
    """For a thread.

    After a call that took items, its connection stays with the session to the end: until then the
    call can be undone, since it is the last one in its lane.
    """

    __slots__ = (
        "_ahead",
        "_caller",
        "_pool",
        "_session",
        "_taken",
        "_wire",
        "binding",
        "found",
    )

    def __init__(self, binding: RedisBinding, pool: Pool) -> None:
        self.binding = binding
        self._pool = pool
        self._session: RedisSession | None = None
        self._wire: BlockingWire | None = None
        self._taken: TakeBack | None = None
        self._caller: _Caller | None = None
        self._ahead: SentCall | None = None
        self.found: list[Any] | None = None

    @property
    def taken(self) -> TakeBack | None:
        """The request that undoes the last call that took items, if there was one."""
        return self._taken if self._session is None else self._session.taken

    def call(self, request: Request, end: float | None = None) -> Any:
        found = implementations[type(request)]
        if type(found) is FirstScript and self._caller is None:
            said: Reply | None = None
            if self._ahead is not None:
                said = self._read_ahead(self._ahead, end)
            elif (script := found.first(self.binding, request)) is not None:
                op, args = script
                said = self._call_quickly(op, args, end)
                if said is None:
                    said = finish(self._longer().script(op, args, end))
            if said is not None:
                reply = found.read(request, said)
                if reply is not None:
                    return reply
            self._caller = _Caller(self)
            return finish(found.rest(self._caller, request, end, said))
        if type(found) is OneScript:
            if self._ahead is not None:
                reply = self._read_ahead(self._ahead, end)
            else:
                reply = self.script(found.op, found.args(self.binding, request), end)
            if found.rings and (bells := bells_in(reply)):
                self.script("ring", bells)
            return found.read(request, reply)
        if type(found) is ReadFirst:
            reply = self._read_plainly(found, request, end)
            if reply is not None:
                return reply
            if self._ahead is not None:
                return found.read(request, self._read_ahead(self._ahead, end))
            return found.read(request, self.script(*found.script(self.binding, request), end))
        if self._caller is None:
            self._caller = _Caller(self)
        return finish(found(self._caller, request, end))

    def send_ahead(self, request: Request) -> bool:
        found = implementations[type(request)]
        script = None
        if type(found) is ReadFirst:
            self._send_read(found.plain(self.binding, request))
            if self._ahead is not None:
                return True
            script = found.script(self.binding, request)
        elif type(found) is FirstScript:
            script = found.first(self.binding, request)
        elif type(found) is OneScript:
            script = found.op, found.args(self.binding, request)
        if script is None or script[0] not in self.binding.quick:
            return False
        wire: Any = self._pool.idle(self.binding.slot)
        if wire is None:
            return False
        op, args = script
        command = self.binding.commands[op]
        number = command.number(wire.lane)
        packed = command.pack(args, wire.id, wire.lane, number)
        self._send(SentCall(op, args, wire, number), packed)
        return True

    def _send_read(self, read: PlainRead | None) -> None:
        """Send a command that reads, and the script behind it."""
        if read is None or read.op not in self.binding.quick:
            return
        wire: Any = self._pool.idle(self.binding.slot)
        if wire is None:
            return
        packed = self.binding.commands[read.op].pack(read.args, wire.id, wire.lane, b"")
        ahead = SentCall(read.op, read.args, wire, b"", reads=True)
        self._send(ahead, read.command + packed)

    def _send(self, ahead: SentCall, packed: bytes) -> None:
        # Note it first: after an interruption of the next step it is not known whether it was sent.
        self._ahead = ahead
        try:
            ahead.wire.send_now(packed)
        except OSError:
            return
        ahead.is_sent = True

    def _read_plainly(self, found: ReadFirst[Any, Any], request: Request, end: float | None) -> Any:
        """Read the replies to a reading command and to the script behind it, which are sent first
        if they were not, and make a reply of them. None when they do not count: then the script did
        nothing, or something that the request's first script finds done."""
        limit = None
        if self._ahead is None:
            self._send_read(found.plain(self.binding, request))
            limit = patience(end, self._pool.silence, self.binding.options.until)
        ahead = self._ahead
        if ahead is None or not ahead.reads:
            return None
        wire, self._ahead = ahead.wire, None
        try:
            if not ahead.is_sent:
                raise ConnectionError("a command was not sent, or not all of it")
            read = finish(wire.read(limit))
            reply = finish(wire.read(limit))
            if is_missing(reply):  # the next call of it is done
                finish(load(wire, self.binding, ahead.op, limit))
        except OSError as error:
            self._longer().lose(wire, error)
            return None
        except BaseException as error:
            self._longer().lose(wire, error)
            raise
        self._pool.checkin(wire)
        if is_missing(reply):
            return None
        said = read_bare(reply)
        return found.join(self.binding, request, read, said if type(said) is list else [DECLINED])

    def _read_ahead(self, ahead: SentCall, end: float | None) -> Reply:
        """Read the reply to the call that was sent ahead."""
        self._ahead = None
        return self._read_sent(ahead, lambda: ahead.is_sent, end)

    def _read_sent(
        self, sent: SentCall, read_before: Callable[[], bool], end: float | None
    ) -> Reply:
        """Read the reply to a call that was sent, after ``read_before`` has read the replies before
        it and returned that this one comes. Send the call again, under the same number, if it is
        not known whether it was sent."""
        wire = sent.wire
        reply: Any = ConnectionError("a command was not sent, or not all of it")
        try:
            if read_before():
                reply = wire.exchange_now(b"")
        except OSError as error:
            reply = error
        except BaseException as error:
            self._longer().lose(wire, error)
            raise
        return self._understand(
            Attempt(wire, wire.lane, sent.number, reply), sent.op, sent.args, end
        )

    def wait(self, later: Later, timeout: float | None) -> bool:
        assert self._caller is not None
        assert self._caller.waiter is not None  # the call that returned later has set it
        return finish(self._caller.waiter.wait(later, timeout))

    def script(self, op: str, args: tuple[Any, ...] = (), end: float | None = None) -> Reply:
        """Call a script, once; return its status and values. ``end`` is as in ``Session.call``."""
        session = self._session
        if session is not None and session.behind is not None:
            if session.behind.op == op:
                return self._read_behind(session, session.behind)
            if not session.is_parked:
                self.interrupted()  # its reply would come first
        reply = self._call_quickly(op, args, end)
        if reply is not None:
            return reply
        if op in self.binding.giving_back and self.taken is not None:
            self.interrupted()  # an exception came: otherwise there would be nothing to give back
        return finish(self._longer().script(op, args, end))

    def _longer(self) -> RedisSession:
        """Return the session for everything but calls that succeed at once."""
        if self._session is None:
            self._session = RedisSession(self.binding, self._pool)
            self._session.taken = self._taken
            if self._wire is not None:
                self._session.keep(self._wire)
                self._wire = None
        return self._session

    def _call_quickly(self, op: str, args: tuple[Any, ...], end: float | None) -> Reply | None:
        """Make a call at once; if it fails, the longer session goes on with it. Returns None when
        nothing was sent."""
        binding, session = self.binding, self._session
        if end is not None or op not in binding.quick:
            return None
        wire: Any = self._wire if session is None else session.free_wire
        if wire is None and session is None:
            wire = self._pool.idle(binding.slot)
        if wire is None:
            return None
        command, lane = binding.commands[op], wire.lane
        number, takes = command.number(lane), op in TAKING
        if session is not None:
            session.granted = None
            if takes:
                session.taken = TakeBack((lane, number))
        elif takes:
            self._taken = TakeBack((lane, number))
        reply: Any
        try:
            reply = wire.exchange_now(command.pack(args, wire.id, lane, number))
        except OSError as error:
            reply = error
        except BaseException as error:
            self._longer().lose(wire, error)
            raise
        return self._understand(Attempt(wire, wire.lane, number, reply), op, args, None)

    def _understand(
        self, attempt: Attempt, op: str, args: tuple[Any, ...], end: float | None
    ) -> Reply:
        """Return the status and values of an attempt; if it failed, the longer session goes on with
        it."""
        wire: Any = attempt.wire
        reply = attempt.outcome
        if self.binding.commands[op].script.bare:
            reply = [DONE, reply] if type(reply) is bytes else read_bare(reply)
        if type(reply) is not list or reply[0] in CAME_AGAIN:
            return finish(self._longer().script(op, args, end, attempt))
        if self._session is None and reply[0] in _AT_ONCE:
            if op in TAKING or wire is self._wire:
                self._wire = wire
            else:
                self._pool.checkin(wire)
        else:
            self._longer().keep(wire)
        return reply

    def _read_behind(self, session: RedisSession, behind: SentCall) -> Reply:
        """End the wait, and read the reply to the call that was sent behind it."""
        session.behind = session.granted = None

        def read_before() -> bool:
            if session.is_parked:
                finish(session.end_wait())
            return session.free_wire is not None

        return self._read_sent(behind, read_before, None)

    def park(
        self, signal: str, timeout: float | None, then: Call | None = None, lasts: float = 0.0
    ) -> bool:
        if then is not None and then.op not in self.binding.quick:
            then = None
        return finish(self._longer().park(signal, timeout, then, lasts))

    def interrupted(self) -> None:
        if self._ahead is not None:
            self._ahead.wire.give_up()
            self._ahead = None
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        if self._session is not None:
            self._session.interrupted()

    def end(self) -> None:
        caller = self._caller
        try:
            if caller is not None and caller.waiter is not None:
                finish(caller.waiter.end())
                caller.waiter = None
        finally:
            session, wire = self._session, self._wire
            if session is not None and session.is_parked:
                finish(session.end())
            elif session is not None:
                session.give_wire_back()
            elif wire is not None:
                self._wire = None
                self._pool.checkin(wire)
        self._caller = None  # no cycle, which would keep the items until garbage is collected


class _Caller:
    """The caller that a thread's session gives to the implementations of requests. It never
    suspends."""

    __slots__ = ("_session", "renewed", "waiter")

    def __init__(self, session: BlockingSession) -> None:
        self._session = session
        self.waiter: Waiter | None = None
        self.renewed = 0.0

    @property
    def binding(self) -> RedisBinding:
        return self._session.binding

    async def script(self, op: str, args: tuple[Any, ...] = (), end: float | None = None) -> Reply:
        return self._session.script(op, args, end)

    @property
    def receives(self) -> bool:
        return self.binding.options.is_private

    async def accept(self, op: str, args: tuple[Any, ...], safe: float) -> Reply | None:
        return accept(self._session._longer(), self._session._pool, op, args, safe)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def park(
        self, signal: str, timeout: float | None, then: Call | None = None, lasts: float = 0.0
    ) -> bool:
        return self._session.park(signal, timeout, then, lasts)

    @property
    def is_parked(self) -> bool:
        longer = self._session._session
        return longer is not None and longer.is_parked

    @property
    def has_sent(self) -> bool:
        longer = self._session._session
        return longer is not None and longer.has_sent

    @property
    def wait_reply(self) -> Any:
        return self._session._longer().wait_reply
