"""A thread's dealings with the server: the short way, and the session for what takes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...effects import DECLINED, DONE, Reply
from .errors import AGAIN, STALE
from .pool import Pool
from .scripts import read_bare
from .session import TAKING, Begun, RedisSession
from .wire import BlockingWire, finish

if TYPE_CHECKING:
    from .engine import RedisBinding
    from .outage import Lane

#: With these replies to the first call of an operation its connection is idle again.
_AT_ONCE = (DONE, DECLINED)
#: The replies to a call that came twice.
_AGAIN = (AGAIN, STALE)


class BlockingSession:
    """For a thread.

    After a call that took items out its connection stays with the session to the end: until then
    the call can be undone, since it is the last one in its lane.
    """

    __slots__ = ("_binding", "_pool", "_session", "_taken", "_wire", "found")

    def __init__(self, binding: RedisBinding, pool: Pool) -> None:
        self._binding = binding
        self._pool = pool
        self._session: RedisSession | None = None
        self._wire: BlockingWire | None = None
        self._taken: tuple[Lane, str] | None = None
        self.found: list[Any] | None = None

    @property
    def taken(self) -> tuple[Lane, str] | None:
        """The lane and the number of the last call that takes items out, if there was one."""
        return self._session.taken if self._session is not None else self._taken

    def call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Reply:
        if end is None and op in self._binding.quick:
            session = self._session
            wire: Any = session.free_wire if session else self._wire or self._idle_wire()
            if wire is not None:
                if session is not None:
                    session.granted = None
                return self._call_quickly(wire, op, args)
        if op in self._binding.giving_back and self.taken is not None:
            self.interrupted()  # something did, or there would be nothing to give back
        return finish(self._longer().call(op, args, end))

    def _idle_wire(self) -> Any:
        return self._pool.idle(self._binding.slot)

    def _longer(self) -> RedisSession:
        """For what takes more than calls that go well."""
        if self._session is None:
            self._session = RedisSession(self._binding, self._pool)
            self._session.taken = self._taken
            if self._wire is not None:
                self._session.keep(self._wire)
                self._wire = None
        return self._session

    def _call_quickly(self, wire: BlockingWire, op: str, args: tuple[Any, ...]) -> Reply:
        """A call, when all goes well; what comes of it else is the session's to see to."""
        binding, lane = self._binding, wire.lane
        number = binding.number(op, lane)
        takes = op in TAKING
        if takes and self._session is None:
            self._taken = lane, number
        elif takes:
            self._longer().taken = lane, number
        reply: Any
        try:
            reply = wire.exchange_now(binding.command(op, args, wire.id, lane, number))
        except OSError as error:
            reply = error
        except BaseException as error:
            self._longer().lose(wire, error)
            raise
        if op in binding.bare:
            reply = read_bare(reply)
        if type(reply) is not list or reply[0] in _AGAIN:
            return finish(self._longer().call(op, args, begun=Begun(wire, number, reply)))
        if self._session is None and reply[0] in _AT_ONCE:
            if takes or wire is self._wire:
                self._wire = wire
            else:
                self._pool.checkin(wire)
        else:
            self._longer().keep(wire)
        return reply

    def park(self, signal: str, timeout: float | None) -> bool:
        return finish(self._longer().park(signal, timeout))

    def interrupted(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        if self._session is not None:
            self._session.interrupted()

    def end(self) -> None:
        session = self._session
        if session is None:
            wire, self._wire = self._wire, None
            if wire is not None:
                self._pool.checkin(wire)
            return
        if session.is_parked:
            finish(session.end())
        else:
            session.give_wire_back()
