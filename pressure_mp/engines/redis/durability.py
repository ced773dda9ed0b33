"""Have replicas, or the disk, confirm a call, on the connection over which it was made."""

from __future__ import annotations

from typing import Any

from ...exceptions import BrokerError, BrokerUnavailable, NotDurable, UnsupportedServerError
from ..contract.session import Durability
from .binding import CONFIRM_SECONDS, RedisBinding
from .errors import not_done
from .wire import Carrier

#: More seconds, for the server to reply that they did not confirm.
_GRACE = 1.0

_PUT = "the item is in queue {!r}"
_DONE = {
    "put": _PUT,
    "put_at_once": _PUT,
    "put_many": "the items are in queue {!r}",
    "close": "queue {!r} is shut down",
    "ack": "the task of queue {!r} is acknowledged",
    "ack_many": "the tasks of queue {!r} are acknowledged",
}
_AGAIN = {
    **dict.fromkeys(("put", "put_at_once"), "; to put it again would add it a second time"),
    "put_many": "; to put them again would add them a second time",
}


async def check(wire: Carrier, binding: RedisBinding, wanted: Durability) -> None:
    """Raise an error, before the call, if the server cannot confirm anything."""
    if wire.confirms:
        return
    reply = await wire.request(*_command(wanted, 1, probe=True), timeout=CONFIRM_SECONDS)
    if isinstance(reply, Exception):
        url, text = binding.address.url, str(reply)
        if not_now := not_done(text, binding.address):
            raise not_now
        if "unknown command" in text:
            raise UnsupportedServerError(
                f"the server at {url} cannot do durability={str(wanted)!r}, which needs Redis 7.2 "
                "or Valkey 7.2, or later; nothing was done"
            )
        raise BrokerError(
            f"the server at {url} cannot do durability={str(wanted)!r}; nothing was done: {text}"
        )
    wire.confirms = True


async def confirm(wire: Carrier, binding: RedisBinding, wanted: Durability, op: str) -> None:
    """Wait until the last call over this connection is confirmed. Raises NotDurable."""
    limit = int(CONFIRM_SECONDS * 1000)
    seconds = CONFIRM_SECONDS + _GRACE
    reply = await wire.request(*_command(wanted, limit), timeout=seconds, has_effect=True)
    if isinstance(reply, Exception):
        text = str(reply)
        if text.startswith("UNBLOCKED") or not_done(text, binding.address):
            # The server is no primary any more. The call is sent again to the new primary.
            raise BrokerUnavailable(f"the broker at {binding.address.url} changes: {text}")
        confirmed, why = 0, f"the server says: {text}"
    elif wanted.replicas:
        confirmed = int(reply)
        why = f"{confirmed} of {wanted.replicas} replicas confirmed it within {CONFIRM_SECONDS:g} s"
    else:
        confirmed, why = int(reply[0]), f"no fsync confirmed it within {CONFIRM_SECONDS:g} s"
    if confirmed < (wanted.replicas or 1):
        done = _DONE[op].format(binding.name)
        raise NotDurable(f"{done}, but {why}{_AGAIN.get(op, '')}", confirmed)


def _command(wanted: Durability, limit: int, probe: bool = False) -> tuple[Any, ...]:
    if wanted.replicas:
        return ("WAIT", 0 if probe else wanted.replicas, limit)
    return ("WAITAOF", 1, 0, limit)
