"""A thread that was given its item with the news takes it out by a call whose reply nobody waits
for."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from ...exceptions import PressureError
from ..finishing import finish
from .binding import RedisBinding
from .blocking_wire import BlockingWire
from .lanes import Lane
from .pool import Pool
from .scripts import read_bare
from .session import CAME_AGAIN, Begun, RedisSession
from .statuses import DONE, Reply

#: Bytes of an item that is sent again to say which one was taken.
_SMALL = 1 << 12
#: The first byte of an item whose content may be beside the queue.
_MANIFEST = 0xFA


def accept(
    session: RedisSession, pool: Pool, op: str, args: tuple[Any, ...], safe: float
) -> Reply | None:
    """As of ``Caller``. The next call over the connection reads the reply."""
    binding, item = session.binding, session.heard
    wire: Any = session.free_wire
    # What is large is not sent again; what has its content beside the queue needs more.
    if wire is None or op not in binding.quick or not 0 < len(item) <= _SMALL:
        return None
    if item[0] == _MANIFEST or time.monotonic() >= safe:
        return None
    args = (*args, item)
    lane: Lane = wire.lane
    command = binding.commands[op]
    number = command.number(lane)
    session.granted, session.taken = None, (lane, number)
    packed = command.pack(args, wire.id, lane, number)
    reply: Any
    try:
        wire.send_now(packed)
        # Others may have the role since the moment `safe`: what was sent before is in time.
        if time.monotonic() < safe:
            wire.unheard = _Accepting(binding, pool, op, args, wire, lane, number)
            return [DONE, item]
        reply = read_bare(wire.exchange_now(b""))
    except OSError as error:
        reply = error
    except BaseException as error:
        session.lose(wire, error)
        raise
    if type(reply) is list and reply[0] not in CAME_AGAIN:
        return reply
    return finish(session.script(op, args, begun=Begun(wire, lane, number, reply)))


class _Accepting(NamedTuple):
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
