"""Translate a server's error reply to a script into an error that names the cause."""

from __future__ import annotations

import re
from typing import Any

from ...exceptions import (
    BrokerError,
    IncompleteQueueError,
    ItemTooLargeError,
    PressureError,
    WrongKeyTypeError,
)
from . import keys
from .binding import RedisBinding
from .errors import not_done, refusal
from .wire import Carrier

#: Seconds between two calls of a client that waits, while the server has no memory.
_NO_MEMORY = 0.5

#: The value of the key `bound`, of a queue of the protocol and of any other: scripts refuse another
#: one, and a longer number.
_BOUND, _OWN_BOUND = re.compile(rb"[0-9]{1,300}"), re.compile(rb"[a-z]+ [0-9]{1,300}")

#: The error of a script that needs a missing key, within the text of the server.
_LOST = re.compile(r"LOST (\w+)")

#: The errors of a server when a key holds a value that no client of the protocol writes.
_WRONG_VALUE = ("WRONGTYPE", "not an integer", "increment or decrement would overflow")


def stale(binding: RedisBinding, lane: bytes) -> BrokerError:
    """Make the error for a call that the server took for an old one."""
    return BrokerError(
        f"queue {binding.name!r} cannot be used by this connection: key "
        f"{binding.kept(lane).decode()!r} has a value that no client writes; delete it"
    )


def refuse_wait(reply: Exception, binding: RedisBinding, signal: str) -> float:
    """Return the seconds to pause before the next call, for an error reply to a wait: a server
    without memory lets no client wait. Raises BrokerError, unless that call will report the
    cause."""
    text = str(reply)
    if text.startswith("OOM "):
        return _NO_MEMORY
    if text.startswith(("UNBLOCKED", "WRONGTYPE")) or not_done(text, binding.address):
        return 0.0
    raise BrokerError(
        f"the broker at {binding.address.url} refuses to wait for {signal} on queue "
        f"{binding.name!r}: {reply}"
    )


async def translate(
    reply: Any, binding: RedisBinding, op: str, args: tuple[Any, ...], wire: Carrier
) -> PressureError:
    """Make the error for an error reply to ``op``. May ask the server which key is wrong."""
    text = str(reply)
    address, queue = binding.address, binding.name
    if "invalid bulk length" in text or "invalid multibulk length" in text:
        size = max((len(arg) for arg in args if isinstance(arg, bytes)), default=0)
        return ItemTooLargeError(
            f"the broker at {address.url} refuses an item of {size} bytes for queue {queue!r}; "
            "its setting proto-max-bulk-len is the limit"
        )
    if elsewhere := not_done(text, address):
        return elsewhere
    if lost := _LOST.search(text):
        is_mended = binding.discipline == "tasks"
        advice = "doctor --fix` puts it right" if is_mended else "doctor` says what to do"
        return IncompleteQueueError(
            f"queue {queue!r} has lost its key `{lost[1]}`, or a part of it: the server or "
            f"another program removed it; `pressure-mp {advice}"
        )
    if any(sign in text for sign in _WRONG_VALUE):
        wrong = await _wrong_key(binding, op, wire)
        if wrong:
            return WrongKeyTypeError(f"queue {queue!r} cannot be used: {wrong}")
    return refusal(text, address, f"{op} on queue {queue!r}")


async def _wrong_key(binding: RedisBinding, op: str, wire: Carrier) -> str | None:
    named = [(binding.key(part), part) for part in binding.scripts[op].keys]
    for name, part in [*named, (binding.kept(wire.lane.id), "kept")]:
        kind = await wire.request("TYPE", name)
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        expected = keys.type_of(part, binding.discipline)
        if kind not in ("none", expected):
            return f"key {name.decode()!r} is a {kind}, where a {expected} belongs"
        if part == "bound" and kind == "string":
            value = await wire.request("GET", name)
            before = "" if binding.discipline == keys.FIFO else f"{binding.discipline!r} and "
            if not (_OWN_BOUND if before else _BOUND).fullmatch(value):
                return (
                    f"key {name.decode()!r} holds {value[:40]!r}, where {before}a number from 0 on "
                    "belongs; set it right, or delete the queue"
                )
        elif expected == "string" and part not in ("producer", "consumer", "deleting"):
            value = await wire.request("GET", name)
            if value is not None and not _is_count(value):
                return f"key {name.decode()!r} holds {value[:40]!r}, where a count belongs"
    number = await wire.request("HGET", binding.kept(wire.lane.id), "number")
    if number is not None and not (number.isdigit() and len(number) < 16):
        kept = binding.kept(wire.lane.id).decode()
        return f"key {kept!r} holds {number[:40]!r}, where the number of a call belongs"
    return None


def _is_count(value: bytes) -> bool:
    """Tell whether the server can increment this value."""
    digits = value.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 19 or b"%d" % int(value) != value:
        return False
    return -(2**63) <= int(value) < 2**63
