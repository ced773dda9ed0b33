"""Calls of scripts that the server may not have, or not any more."""

from __future__ import annotations

from typing import Any

from .binding import RedisBinding
from .errors import not_done, refusal
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


async def exchange(
    wire: Carrier,
    binding: RedisBinding,
    op: str,
    command: bytes,
    limit: float | None,
    has_effect: bool = False,
) -> Any:
    """Call a script, and load it first if the server does not have it."""
    reply = await wire.exchange(command, limit, has_effect)
    if is_missing(reply):
        await load(wire, binding, op, limit)
        reply = await wire.exchange(command, limit, has_effect)
    return reply
