"""Whether a server removes keys by itself when its memory is full. Then no queue is safe there.

With ``allkeys-…`` it takes items that were acknowledged, and the keys that say who has a role. With
``volatile-…`` it takes the keys that end by themselves first: the last replies to calls, without
which a call that is sent again is done twice, and what tells a queue from a former one of its name.
"""

from __future__ import annotations

from typing import Any

from ...caller_warnings import warn_caller
from ...exceptions import EvictingServerError, EvictionWarning
from .address import RedisAddress
from .packing import pack_command

_QUESTION = pack_command(("INFO", "memory"))

#: The servers that this process has asked since it lost a connection to one there. A set's own
#: methods need no lock.
_asked: set[RedisAddress] = set()


def forget(address: RedisAddress) -> None:
    """A connection was lost: the next one may lead to another server, or to other settings."""
    _asked.discard(address)


def question(address: RedisAddress) -> bytes:
    """The packed command to ask over the first connection of this process to a server, and the
    first one after one was lost; empty over the others."""
    return b"" if address in _asked else _QUESTION


def check(reply: Any, address: RedisAddress) -> None:
    """See what the server said to it: whether it removes keys.

    Raises EvictingServerError; where ``allow_eviction`` was asked for it warns instead. A user who
    may not ask (``INFO``) is not told.
    """
    if isinstance(reply, Exception):
        if str(reply).startswith(("NOPERM", "ERR unknown command")):
            _asked.add(address)
        return
    policy, limit = _read(reply)
    problem = None
    if limit and policy != "noeviction":
        problem = (
            f"the broker at {address.url} removes keys by itself when its memory is full "
            f"(maxmemory {limit}, maxmemory-policy {policy}): acknowledged items can be lost, or "
            "calls done twice"
        )
    if problem and not address.allow_eviction:
        raise EvictingServerError(
            f"{problem}. Set maxmemory-policy to noeviction there; or accept this with "
            "allow_eviction=1 in the URL, or with PRESSURE_ALLOW_EVICTION=1"
        )
    if problem:
        warn_caller(problem, EvictionWarning)
    _asked.add(address)


def _read(reply: bytes) -> tuple[str, int]:
    """The policy and the limit in bytes, 0 for none; a server that does not tell them has none."""
    fields = dict(line.partition(b":")[::2] for line in reply.splitlines())
    return fields.get(b"maxmemory_policy", b"noeviction").decode(), int(fields.get(b"maxmemory", 0))
