"""The check whether a server removes keys when its memory is full. Then no queue is safe there.

With ``allkeys-…`` it removes items of confirmed puts, and the keys with the holders of roles. With
``volatile-…`` it removes the keys that expire: the last replies to calls, without which a call that
is sent again is done twice, and the marks that tell a queue from a former queue of its name.
"""

from __future__ import annotations

from typing import Any

from ...caller_warnings import warn_caller
from ...exceptions import EvictingServerError, EvictionWarning
from .address import RedisAddress
from .packing import pack_command

_QUESTION = pack_command(("INFO", "memory"))

#: The addresses that this process has checked since it last lost a connection there. A set's own
#: methods need no lock.
_asked: set[RedisAddress] = set()


def forget(address: RedisAddress) -> None:
    """Check the address again after a lost connection: the next one may lead to another server, or
    to other settings."""
    _asked.discard(address)


def question(address: RedisAddress) -> bytes:
    """Return the packed command to send over a process's first connection to a server, and over the
    first one after a lost connection; empty for all others."""
    return b"" if address in _asked else _QUESTION


def check(reply: Any, address: RedisAddress) -> None:
    """Check the reply to that command: whether the server removes keys.

    Raises EvictingServerError; with ``allow_eviction`` it warns instead. Nothing is checked for a
    user without the right to ``INFO``.
    """
    if isinstance(reply, Exception):
        if str(reply).startswith(("NOPERM", "ERR unknown command")):
            _asked.add(address)
        return
    told = dict(line.partition(b":")[::2] for line in reply.splitlines())
    # A server that does not tell these has no limit, in bytes.
    policy = told.get(b"maxmemory_policy", b"noeviction").decode()
    limit = int(told.get(b"maxmemory", 0))
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
