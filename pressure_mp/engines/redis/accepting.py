"""The call that takes out an item that a get was given with the news, and has handed out before."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...exceptions import PressureError
from .binding import RedisBinding
from .lanes import Lane
from .pool import Pool
from .session import Begun, RedisSession
from .wire import BlockingWire, finish


class Accepting(NamedTuple):
    """A call that took out an item which its caller has already."""

    binding: RedisBinding
    pool: Pool
    op: str
    args: tuple[Any, ...]
    wire: BlockingWire
    lane: Lane
    number: bytes

    def settle(self, outcome: Any) -> None:
        """As of :class:`~.unheard.Unheard`. When the broker cannot be reached the item is still
        queued, and comes again when the lease of the role has ended."""
        if outcome is None or type(outcome) is bytes:
            return
        session = RedisSession(self.binding, self.pool)
        begun = None
        if isinstance(outcome, OSError):
            begun = Begun(self.wire, self.lane, self.number, outcome)
        # Else the server refused it, and may have done the next call of that lane, whose reply is
        # still to come over this connection: it is a new call, over another one.
        try:
            finish(session.script(self.op, self.args, begun=begun))
        except PressureError:
            pass
        wire = session.free_wire
        if wire is not None:
            if begun is not None:
                wire.lane = Lane()  # the other one is its caller's, for the next call
            session.give_wire_back()
