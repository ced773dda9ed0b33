"""Errors for replies that say that a call was not done, or cannot be done."""

from __future__ import annotations

import re

from ...exceptions import BrokerError, BrokerFull, BrokerUnavailable
from .address import RedisAddress

#: The replies of a server that cannot do a call now, and has done nothing.
_NOT_NOW = re.compile(
    r"(?:^|-)(?:LOADING|MASTERDOWN|READONLY|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|ASK|NOSCRIPT|BUSY"
    r"|MISCONF) "
    r"|max number of clients|WAIT(?:AOF)? cannot be used with replica"
)
#: What to do about some of them.
_ADVICE = {
    "READONLY": "it is a replica: the URL should name its primary, or begin with redis+sentinel://",
    "max number of clients": "raise its maxclients, or end clients that are not needed",
}
#: Errors of servers when the user may not run a command, or use a key, also in a script.
_NO_RIGHT = re.compile(r"NOPERM |ACL failure|The user executing the script can't")
_MOVED = re.compile(r"MOVED (\d+) (.*):(\d+)$")

#: The status of a call whose number is lower than the last one of its lane.
STALE = b"stale"

#: The status of the reply to a call that was done before; that reply follows.
AGAIN = b"again"


class NotDone(BrokerUnavailable):
    """The server cannot do a call now, or here, and has done nothing."""


class Moved(NotDone):
    """The server refuses a call because another one serves the queue's slot now."""

    def __init__(self, slot: int, host: str, port: int) -> None:
        super().__init__(f"slot {slot} moved to {host}:{port}")
        self.slot = slot
        self.host = host.replace("?", "")  # the reply of a node that does not know its own name
        self.port = port


def not_done(text: str, address: RedisAddress) -> NotDone | None:
    """Make the error for a reply that says that nothing was done, and that a later try, or another
    server, may do it."""
    moved = _MOVED.match(text)
    if moved and address.nodes:
        return Moved(int(moved[1]), moved[2], int(moved[3]))
    if _NOT_NOW.search(text):
        advice = "".join(f"; {advice}" for sign, advice in _ADVICE.items() if sign in text)
        return NotDone(f"the broker at {address.url} is not ready: {text.rstrip('.')}{advice}")
    return None


def refusal(text: str, address: RedisAddress, what: str) -> BrokerError:
    """Make the error for a reply that no other try can change."""
    if text.startswith(("OOM ", "-OOM ")) or " OOM " in text:
        return BrokerFull(
            f"the broker at {address.url} has no memory left for {what} ({text}). Nothing was "
            "done. Get items, purge unused queues, or raise its maxmemory; with a "
            "maxsize a queue makes its producers wait before that"
        )
    advice = ""
    if text.startswith(("MOVED ", "CROSSSLOT ")):
        advice = "; it is a node of a cluster: use redis+cluster://"
    elif _NO_RIGHT.search(text):
        advice = (
            f"; {address.username or 'the default user'} lacks the right to a command or a key. "
            "ACL LOG at the server shows which one; docs/security.md has the rights that suffice"
        )
    return BrokerError(f"the broker at {address.url} refuses {what}: {text}{advice}")
