"""Calls that the server refuses at first, and has not done: it may not have the script, or not any
more; or the keys beside a queue may be a former queue's of its name.

Scripts that use these keys refuse while they may be; see the Lua files ``prelude/incarnation`` and
``queue/adopt``. Then ``adopt`` is run, and the call is made again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .binding import RedisBinding
from .errors import not_done, refusal
from .refusals import translate
from .wire import Carrier


def is_missing(reply: Any) -> bool:
    """Tell whether the reply says that the server does not have the script."""
    return type(reply) is not list and str(reply).startswith("NOSCRIPT")


async def load(wire: Carrier, binding: RedisBinding, op: str, limit: float | None) -> None:
    source = binding.scripts[op].source
    reply = await wire.request("SCRIPT", "LOAD", source, timeout=limit)
    if isinstance(reply, Exception):
        address = binding.address
        raise not_done(str(reply), address) or refusal(str(reply), address, "SCRIPT LOAD")


async def send_again(
    reply: Any,
    send: Callable[[], Awaitable[Any]],
    wire: Carrier,
    binding: RedisBinding,
    op: str,
    limit: float | None,
) -> Any:
    """Have the server do a call that it did not do, as ``reply`` may say: because it does not have
    the script, or because keys may be a former queue's. Then ``send`` makes the call again. Returns
    the last reply."""
    if is_missing(reply):
        await load(wire, binding, op, limit)
        reply = await send()
    while type(reply) is not list and str(reply).startswith("ADOPT "):
        await adopt(wire, binding, limit)
        reply = await send()
    return reply


async def adopt(wire: Carrier, binding: RedisBinding, limit: float | None) -> None:
    """Remove the keys of a former queue, and mark the keys from now on as this queue's."""
    command = binding.commands["adopt"].pack((), wire.id, wire.lane, b"")
    reply = await wire.exchange(command, limit)
    if is_missing(reply):
        await load(wire, binding, "adopt", limit)
        reply = await wire.exchange(command, limit)
    if type(reply) is not list:
        raise await translate(reply, binding, "adopt", (), wire)
