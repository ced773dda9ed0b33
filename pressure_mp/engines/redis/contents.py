"""The chunks of contents on a connection: nothing is copied to send or to receive one."""

from __future__ import annotations

from typing import Any

from .binding import RedisBinding
from .incarnation import adopt, is_strange
from .loading import is_missing, load
from .packing import pack_command
from .refusals import translate
from .statuses import DONE, LOST, Reply
from .wire import Wire

#: How a packed command ends whose last argument is empty.
_EMPTY = b"$0\r\n\r\n"


async def call(
    wire: Wire, binding: RedisBinding, op: str, args: tuple[Any, ...], limit: float | None
) -> Reply:
    """Do one of the operations that move a chunk; each of them may be done twice."""
    move = _store if op == "store" else _fetch
    reply = await move(wire, binding, args, limit)
    if is_missing(reply):
        await load(wire, binding, "store", limit)
        reply = await move(wire, binding, args, limit)
    while is_strange(reply):
        await adopt(wire, binding, limit)
        reply = await move(wire, binding, args, limit)
    if type(reply) is not list:
        raise await translate(reply, binding, "store", args, wire)
    return reply


async def _store(
    wire: Wire, binding: RedisBinding, args: tuple[Any, ...], limit: float | None
) -> Any:
    """Call the script that keeps a chunk, which is the last of its arguments, in pieces."""
    *named, chunk = args
    packed = binding.command("store", (*named, b""), wire.id, wire.lane, b"")
    size = sum(piece.nbytes for piece in chunk)
    head = packed.removesuffix(_EMPTY) + b"$%d\r\n" % size
    return await wire.exchange_large((head, *chunk, b"\r\n"), limit)


async def _fetch(
    wire: Wire,
    binding: RedisBinding,
    args: tuple[Any, ...],
    limit: float | None,
) -> Any:
    """Read a chunk into the memory that is given for it."""
    token, number, room = args
    field = f"{token[:16]}:{number}"
    command: tuple[Any, ...] = ("HGET", binding.key("chunks"), field)
    packed = pack_command(command)
    reply = await wire.exchange_into(packed, room, limit)
    if isinstance(reply, Exception):
        return reply
    return [DONE] if reply is True else [LOST]
