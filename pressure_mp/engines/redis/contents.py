"""Send and receive the chunks of contents, without copying them, and without waiting for the reply
to each chunk of a request."""

from __future__ import annotations

from typing import Any

from .binding import RedisBinding
from .loading import send_again
from .packing import pack_command
from .refusals import translate
from .statuses import DONE, LOST, Reply
from .wire import Wire

#: The end of a packed command whose last argument is empty.
_EMPTY = b"$0\r\n\r\n"


async def call(
    wire: Wire, binding: RedisBinding, op: str, args: tuple[Any, ...], limit: float | None
) -> Reply:
    """Do an operation that moves chunks, which may be done twice. The reply is the first one that
    reports a failure, if any does."""
    move = _store if op == "store" else _fetch

    async def send() -> Any:
        replies = await move(wire, binding, args, limit)
        return next((reply for reply in replies if reply != [DONE]), replies[0])

    reply = await send_again(await send(), send, wire, binding, "store", limit)
    if type(reply) is not list:
        raise await translate(reply, binding, "store", args, wire)
    return reply


async def _store(
    wire: Wire, binding: RedisBinding, args: tuple[Any, ...], limit: float | None
) -> list[Any]:
    """Call the script that stores a chunk, which is its last argument, in pieces."""
    token, first, lease, chunks = args
    commands = []
    for number, chunk in enumerate(chunks, first):
        packed = binding.commands["store"].pack(
            (token, number, lease, b""), wire.id, wire.lane, b""
        )
        size = sum(piece.nbytes for piece in chunk)
        head = packed.removesuffix(_EMPTY) + b"$%d\r\n" % size
        commands.append((head, *chunk, b"\r\n"))
    return await wire.exchange_large(commands, limit)


async def _fetch(
    wire: Wire,
    binding: RedisBinding,
    args: tuple[Any, ...],
    limit: float | None,
) -> list[Any]:
    """Read chunks, each into its room."""
    token, first, rooms = args
    key = binding.key("chunks")
    commands = [
        pack_command(("HGET", key, f"{token[:16]}:{number}"))
        for number in range(first, first + len(rooms))
    ]
    replies = await wire.exchange_into(commands, rooms, limit)
    return [
        reply if isinstance(reply, Exception) else [DONE] if reply is True else [LOST]
        for reply in replies
    ]
