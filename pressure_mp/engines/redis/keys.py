"""All key names on a server: no other module builds one."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: The discipline of the protocol; its queues have the protocol's keys.
FIFO = "fifo"

#: One of the disciplines whose queues have keys of this package only; their common keys have the
#: same names.
ANY_OWN = "lifo"

#: The specification's twelve keys, as suffixes of ``prefix:name`` (specification: Queues).
PROTOCOL = {
    "data": "",
    "bound": ":bound",
    "producer": ":producer",
    "consumer": ":consumer",
    "producer_free": ":producer_free",
    "consumer_free": ":consumer_free",
    "produced_messages": ":stats:produced_messages",
    "produced_bytes": ":stats:produced_bytes",
    "consumed_messages": ":stats:consumed_messages",
    "consumed_bytes": ":stats:consumed_bytes",
    "not_full": ":not_full",
    "closed": ":closed",
}

#: The keys of this package beside them.
OWN = {
    "meta": ":mp:meta",
    "done": ":mp:done",
    "finished": ":mp:finished",
    "rejected": ":mp:rejected",
    "users": ":mp:users",
    "producer_granted": ":mp:producer_granted",
    "producer_holder": ":mp:producer_holder",
    "consumer_granted": ":mp:consumer_granted",
    "consumer_holder": ":mp:consumer_holder",
    "deleting": ":mp:deleting",
    "waiting": ":mp:waiting",
    "in_flight": ":mp:in_flight",
    "deliveries": ":mp:deliveries",
    "presence": ":mp:presence",
    "returned": ":mp:returned",
    "producers": ":mp:producers",
    "fetched": ":mp:fetched",
    "readers": ":mp:readers",
    "uploads": ":mp:uploads",
    "chunks": ":mp:chunks",
}

_SUFFIXES = {**PROTOCOL, **OWN}

#: The Redis type of each key, for the error that names a key of another type.
TYPES = {
    **dict.fromkeys(_SUFFIXES, "string"),
    **dict.fromkeys(("data", "producer_free", "consumer_free", "not_full", "closed"), "list"),
    **dict.fromkeys(("finished", "rejected", "producer_granted", "consumer_granted"), "list"),
    "returned": "list",
    **dict.fromkeys(("meta", "users", "producer_holder", "consumer_holder"), "hash"),
    **dict.fromkeys(("waiting", "kept"), "hash"),
    **dict.fromkeys(
        ("in_flight", "deliveries", "presence", "producers", "fetched", "readers"), "hash"
    ),
    "uploads": "zset",
    "chunks": "hash",
    **dict.fromkeys(("items", "tenants", "clock"), "hash"),
    "ready": "list",
    "serial": "string",
}

#: The keys of a queue of tasks, and their Redis types. It has no other keys.
TASKS = {
    "bound": "string",
    **dict.fromkeys(("meta", "users", "presence", "counts", "awaited", "outcomes"), "hash"),
    "workers": "hash",
    **dict.fromkeys(("records", "payloads", "bundles", "groups"), "hash"),
    **dict.fromkeys(("results", "inboxes", "chunks", "uniques"), "hash"),
    **dict.fromkeys(
        ("ready", "tubes", "behind", "due", "expiry", "taken", "shelf", "waiting"), "zset"
    ),
    **dict.fromkeys(("notices", "times"), "zset"),
    **dict.fromkeys(("wake", "woken"), "list"),
    "kept": "hash",
}

#: The disciplines whose items are in a sorted set, and not in a list.
_SORTED = ("priority", "fair")


#: Around the name of a queue of another discipline, behind the prefix: a hash tag for clusters.
_BEGIN, _END = "mp:{", "}"


def type_of(part: str, discipline: str) -> str:
    if discipline == "tasks":
        return TASKS[part]
    return "zset" if part == "data" and discipline in _SORTED else TYPES[part]


def key(prefix: str, name: str, part: str, discipline: str = FIFO) -> bytes:
    if discipline == FIFO:
        return f"{prefix}:{name}{_SUFFIXES[part]}".encode()
    return f"{_own(prefix, name)}{part}".encode()


def kept(prefix: str, name: str, discipline: str = FIFO) -> bytes:
    """Make the beginning of the name of the key that keeps a lane's last reply; the lane's id ends
    it."""
    begin = f"{prefix}:{name}:mp:" if discipline == FIFO else _own(prefix, name)
    return f"{begin}kept:".encode()


def bell(prefix: str, name: str, ticket: str) -> bytes:
    """Make the name of the list on which only one waiter waits, at a queue of another
    discipline."""
    return f"{_own(prefix, name)}bell:{ticket}".encode()


def _own(prefix: str, name: str) -> str:
    """Make the beginning of the key names of a queue of another discipline."""
    return f"{prefix}:{_BEGIN}{name}{_END}:"


def every(prefix: str, part: str) -> str:
    """Make a pattern that matches the names of this key of all queues of the protocol; for the
    bound, of all queues."""
    return f"{_escape(prefix)}:*{_SUFFIXES[part]}"


def every_own(prefix: str) -> str:
    """Make a pattern by which queues of other disciplines are found: each has a key that matches
    it, also when a server removed other keys. Other keys match it too."""
    return f"{_escape(prefix)}:{_BEGIN}*{_END}:[bmp]*"


def _escape(prefix: str) -> str:
    """Make a pattern that only the text itself matches."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", prefix)


def name_of_own(prefix: str, found: bytes) -> str | None:
    """Return the queue of another discipline that has this key, if it is a key that all such queues
    have, or all queues of tasks that have tasks."""
    begin, _, part = found.decode(errors="replace").rpartition(f"{_END}:")
    return begin[len(prefix) + 1 + len(_BEGIN) :] if part in ("bound", "meta", "payloads") else None


def name_of(prefix: str, part: str, found: bytes) -> str:
    """Return the queue of the protocol that has this key."""
    return found.decode(errors="replace")[len(prefix) + 1 : -len(_SUFFIXES[part])]


def names_of(prefix: str, bound: bytes) -> tuple[str, str | None]:
    """Return the queue of the protocol that has this key as its bound; and the queue of another
    discipline that may have it."""
    name = name_of(prefix, "bound", bound)
    if name.startswith(_BEGIN) and name.endswith(_END):
        return name, name[len(_BEGIN) : len(name) - len(_END)]
    return name, None


def beginning(prefix: str, name: str, is_own: bool) -> bytes:
    """Make the beginning of all key names of a queue, of the protocol or of another discipline."""
    return (_own(prefix, name) if is_own else f"{prefix}:{name}").encode()


def endings(parts: Sequence[str], is_own: bool) -> list[bytes]:
    """Make the ends of the names of these keys, behind :func:`beginning`."""
    return [(part if is_own else _SUFFIXES[part]).encode() for part in parts]


def has_hash_tag(prefix: str, name: str, discipline: str = FIFO) -> bool:
    """Tell whether a cluster keeps all keys of a queue in one slot: they have a part in braces."""
    _, brace, rest = key(prefix, name, "data", discipline).decode().partition("{")
    return bool(brace) and rest.find("}") > 0


def samples(prefix: str) -> bytes:
    """Make the name of the list of samples of all queues, the newest last."""
    return f"{prefix}:mp:samples".encode()


def identity(prefix: str) -> bytes:
    """Make the name of the key with the id of the queues of one prefix, which is made when it is
    first read."""
    return f"{prefix}:mp:identity".encode()


def registry(prefix: str, host: str) -> bytes:
    """Make the name of the set of the anonymous queues that processes of one host use."""
    return f"{prefix}:mp:hosts:{host}".encode()


def beside(prefix: str, name: str, discipline: str, host: str) -> dict[str, bytes]:
    """Make the names of the keys that scripts list in ``beside``: of a queue of the other kind with
    the same name, and of the host."""
    rival = ANY_OWN if discipline == FIFO else FIFO
    return {
        "rival_bound": key(prefix, name, "bound", rival),
        "rival_meta": key(prefix, name, "meta", rival),
        "host_queues": registry(prefix, host),
    }
