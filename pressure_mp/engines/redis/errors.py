"""From a server's error reply to an error that names the thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...exceptions import (
    BrokerError,
    BrokerUnavailable,
    ItemTooLargeError,
    PressureError,
    WrongKeyTypeError,
)
from . import keys

if TYPE_CHECKING:
    from .engine import RedisBinding
    from .wire import Wire


async def translate(
    reply: Any, binding: RedisBinding, op: str, args: tuple[Any, ...], wire: Wire
) -> PressureError:
    """The error to raise for an error reply to ``op``. May ask the server which key is wrong."""
    text = str(reply)
    address, queue = binding.engine.address, binding.name
    if "invalid bulk length" in text or "invalid multibulk length" in text:
        size = max((len(arg) for arg in args if isinstance(arg, bytes)), default=0)
        return ItemTooLargeError(
            f"the broker at {address.url} refuses an item of {size} bytes for queue {queue!r}; "
            "its setting proto-max-bulk-len is the limit"
        )
    if text.startswith(("LOADING", "MASTERDOWN")):
        return BrokerUnavailable(f"the broker at {address.url} is not ready: {text}")
    if "WRONGTYPE" in text or "not an integer" in text:
        wrong = await _wrong_key(binding, op, wire)
        if wrong:
            return WrongKeyTypeError(f"queue {queue!r} cannot be used: {wrong}")
    return BrokerError(f"the broker at {address.url} refuses {op} on queue {queue!r}: {text}")


async def _wrong_key(binding: RedisBinding, op: str, wire: Wire) -> str | None:
    for part in binding.scripts[op].keys:
        name = binding.key(part)
        kind = await wire.request("TYPE", name)
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        expected = keys.TYPES[part]
        if kind not in ("none", expected):
            return f"key {name.decode()!r} is a {kind}, where a {expected} belongs"
        if expected == "string" and part not in ("producer", "consumer", "deleting"):
            value = await wire.request("GET", name)
            if value is not None and not value.lstrip(b"-").isdigit():
                return f"key {name.decode()!r} holds {value[:40]!r}, where a number belongs"
    return None
