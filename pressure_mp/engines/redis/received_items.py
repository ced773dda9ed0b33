"""Remove an item that came with the wake-up, by a call whose reply is not waited for."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import Any

from ...exceptions import PressureError
from ..blocking_coroutines import finish
from ..contract.items import TakeBack
from .binding import RedisBinding
from .lanes import Lane
from .pool import Pool
from .scripts import read_bare
from .session import CAME_AGAIN, Attempt, RedisSession
from .statuses import DONE, Reply

#: Bytes of the largest item that is sent again to say which item was taken.
_SMALL = 1 << 12
#: The first byte of an item whose content may be beside the queue.
_MANIFEST = 0xFA


def accept(
    session: RedisSession, pool: Pool, op: str, args: tuple[Any, ...], safe: float
) -> Reply | None:
    """Do what ``Caller.accept`` says. The next call over the connection reads the reply."""
    binding, item = session.binding, session.wait_reply
    wire: Any = session.free_wire
    # A large item is not sent again; an item whose content is beside the queue needs more calls.
    if wire is None or op not in binding.quick or not 0 < len(item) <= _SMALL:
        return None
    if item[0] == _MANIFEST or time.monotonic() >= safe:
        return None
    args = (*args, item)
    lane: Lane = wire.lane
    command = binding.commands[op]
    number = command.number(lane)
    session.granted, session.taken = None, TakeBack((lane, number))
    packed = command.pack(args, wire.id, lane, number)
    reply: Any
    try:
        wire.send_now(packed)
        # Another client may have the role from the moment `safe` on: send the call before that.
        if time.monotonic() < safe:
            attempt = Attempt(wire, lane, number, None)
            wire.unread = partial(_finish_removal, binding, pool, op, args, attempt)
            return [DONE, item]
        reply = read_bare(wire.exchange_now(b""))
    except OSError as error:
        reply = error
    except BaseException as error:
        session.lose(wire, error)
        raise
    if type(reply) is list and reply[0] not in CAME_AGAIN:
        return reply
    return finish(session.script(op, args, attempt=Attempt(wire, lane, number, reply)))


def _finish_removal(
    binding: RedisBinding, pool: Pool, op: str, args: tuple[Any, ...], sent: Attempt, outcome: Any
) -> None:
    """Make the call again that removes an item which its caller has already, if it failed. When the
    broker cannot be reached, the item is still queued, and is delivered again when the lease of the
    role has ended."""
    if outcome is None or type(outcome) is bytes:
        return
    session = RedisSession(binding, pool)
    again = sent._replace(outcome=outcome) if isinstance(outcome, OSError) else None
    # Otherwise the server refused the call, and may have done the next call of that lane, whose
    # reply is still to come over this connection: so make a new call, over another one.
    with suppress(PressureError):
        finish(session.script(op, args, attempt=again))
    wire = session.free_wire
    if wire is not None:
        if again is not None:
            wire.lane = Lane()  # the other lane is for the caller's next call
        session.give_wire_back()
