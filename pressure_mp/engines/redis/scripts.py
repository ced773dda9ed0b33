"""The Lua scripts, read from files whose headers list their keys, arguments and replies."""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from .keys import FIFO
from .statuses import DECLINED, DONE

_ROOT = resources.files(__package__) / "lua"
_HEADER = re.compile(
    r"^-- (given|keys|beside|args|replies|uses|once|full|lane|durable|bare|item): (.*)$",
    re.MULTILINE,
)
_COMMENT = re.compile(r"--.*")
#: The mark of a line that is code in a script of FORWARDS.
_FORWARD = re.compile(r"-- forward: ")
_TIME = "redis.call('TIME')"
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Script:
    """One atomic operation."""

    name: str
    source: bytes
    sha: str
    keys: tuple[str, ...]
    given: int
    """How many of its first keys, which are none of ``keys``, come with each call, as the first
    arguments."""

    beside: tuple[str, ...]
    """The further keys, which are not the queue's."""

    args: tuple[str, ...]
    replies: tuple[str, ...]
    once: bool
    """Whether it is done once, however often its call arrives."""

    in_lane: bool
    """Whether it takes the key and the number of a lane, as all scripts do that are done once."""

    durable: bool
    """Whether its effect is confirmed by replicas or the disk, where the handle asks for it."""

    bare: bool
    """Whether it returns a string for ``done`` with that value, 1 for ``done``, nothing for
    ``declined``: a list takes longer."""

    body: str
    """Its source, without the part by which it is done once."""

    @property
    def wants_connection(self) -> bool:
        """Whether the last argument is the id of the caller's connection."""
        return self.args[-1:] == ("conn",)


@dataclass(frozen=True)
class Storage:
    """The storage of a discipline's items: a prelude, and the keys beside ``data`` that it
    needs."""

    source: str
    keys: tuple[str, ...]
    item: str
    """The list that has an element while an item is queued, on which calls wait for an item."""


def parse(name: str, text: str, preludes: dict[str, str], storage: Storage) -> Script:
    """Read a file's header and put the preludes that it uses before it.

    The key ``item`` is the storage's list on which calls wait for an item.

    With the prelude ``storage`` the script takes the keys of the storage that it names, after its
    own. A prelude may return a reply for a simple case, before the code behind it runs.
    """
    header = dict(_HEADER.findall(text))
    named = header.get("keys", "").split()
    keys = tuple(storage.item if key == "item" else key for key in named)
    given = len(header.get("given", "").split())
    uses = header.get("uses", "").split()
    used = [storage.source if prelude == "storage" else preludes[prelude] for prelude in uses]
    named = _named(storage.keys, [*used, text]) if "storage" in uses else ()
    beside = tuple(header.get("beside", "").split())
    last = len(keys) + given
    for more in filter(None, (named, beside)):
        first, last = last + 1, last + len(more)
        used.insert(0, f"local {', '.join(more)} = unpack(KEYS, {first}, {last})")
    keys += named
    whole = body = "\n".join([*used, text])
    once = "once" in header
    if once:
        is_mending = header.get("once") == "mending"
        whole = _do_once(body, preludes["once"], is_mending, header.get("full") == "yes")
    source = whole.encode()
    return Script(
        name=name,
        source=source,
        sha=_digest(source),
        keys=keys,
        given=given,
        beside=beside,
        args=tuple(header.get("args", "").split()),
        replies=tuple(reply.split()[0] for reply in header["replies"].split("|")),
        once=once,
        in_lane=once or header.get("lane") == "yes",
        durable=header.get("durable") == "yes",
        bare=header.get("bare") == "yes",
        body=body,
    )


def _digest(source: bytes) -> str:
    return hashlib.sha1(source, usedforsecurity=False).hexdigest()


def _do_once(body: str, once: str, is_mending: bool = False, full: bool = False) -> str:
    how = f"{str(is_mending).lower()}, {str(full).lower()}"
    return f"{once}\nlocal function operation()\n{body}\nend\nreturn once(operation, {how})\n"


def _named(keys: tuple[str, ...], sources: list[str]) -> tuple[str, ...]:
    """Select the keys that Lua sources name outside of comments."""
    words = {word for source in sources for word in _WORD.findall(_COMMENT.sub("", source))}
    return tuple(key for key in keys if key in words)


#: The folders of scripts that a discipline of items uses beside its own, as all of these have two
#: roles. Tasks only use the folder for every kind of queue.
_SHARED_BY_ITEMS = ("common", "queue")
_SHARED_BY_OTHER_ORDERS = (*_SHARED_BY_ITEMS, "ordered")
_SHARED = {FIFO: _SHARED_BY_ITEMS, "tasks": ("common",)}


def folders(discipline: str) -> tuple[str, ...]:
    """List the folders with the scripts of a discipline."""
    return (*_SHARED.get(discipline, _SHARED_BY_OTHER_ORDERS), discipline)


#: The scripts that put on a queue and settle a delivery of another one, of items or of tasks; and
#: the script that settles.
FORWARDS = {
    "forward_item": (FIFO, "acknowledge"),
    "forward_task": ("tasks", "ack"),
    "forward_release": ("tasks", "release"),
}


class Scripts(dict[str, Script]):
    """The scripts of a discipline, by the names of their operations. A script of FORWARDS is made
    when a program first asks for it, and is not iterated over."""

    def __init__(self, discipline: str, scripts: dict[str, Script]) -> None:
        super().__init__(scripts)
        self._discipline = discipline

    def __missing__(self, op: str) -> Script:
        return _forward(self._discipline, op)


@functools.cache
def _forward(discipline: str, op: str) -> Script:
    """Make the script that puts on a queue of this discipline and settles, of two others."""
    of_source, settles = FORWARDS[op]
    settle, put = load(of_source)[settles], load(discipline)["put"]
    preludes = _read(_ROOT / "prelude")
    of_settle = _FORWARD.sub("", settle.body).replace(_TIME, "moment")
    body = "\n".join(
        (
            f"local SETTLE_KEYS, SETTLE_ARGS = {len(settle.keys)}, {len(settle.args)}",
            f"local moment = {_TIME}",
            f"local function settle(KEYS, ARGV, only_checks)\n{of_settle}\nend",
            f"local function put(KEYS, ARGV)\n{put.body.replace(_TIME, 'moment')}\nend",
            preludes["forward"],
        )
    )
    source = _do_once(body, preludes["once"]).encode()
    args = *settle.args, *put.args
    return replace(
        put, name=op, source=source, sha=_digest(source), given=len(settle.keys), args=args
    )


@functools.cache
def load(discipline: str) -> Scripts:
    """Load all scripts of a discipline, by the names of their operations."""
    preludes = _preludes(discipline)
    texts: dict[str, str] = {}
    for folder in folders(discipline):
        texts |= _read(_ROOT / folder)
    del texts["storage"]
    kept = storage(discipline)
    return Scripts(
        discipline, {name: parse(name, text, preludes, kept) for name, text in texts.items()}
    )


def _preludes(discipline: str) -> dict[str, str]:
    """Read the preludes, as scripts of a discipline use them."""
    found = _read(_ROOT / "prelude")
    if discipline != FIFO:
        found["incarnation"] = found["own_incarnation"]
        named = f"local DISCIPLINE, UNBOUNDED = '{discipline}', '{discipline} 0'"
        found["bound"] = f"{named}\n{found['own_bound']}"
    if "items" in storage(discipline).keys:
        found["contents"] = found["contents_apart"]
    return found


#: The keys of each queue for the script that renews leases in several queues; the list on which
#: calls wait for an item is the last.
RENEWED = (
    *("bound", "consumed_bytes", "presence", "producers"),
    *("producer_free", "producer_granted", "producer_holder"),
    *("consumer_free", "consumer_granted", "consumer_holder"),
    *("waiting", "closed", "not_full", "producer", "consumer", "uploads"),
)
#: The keys of each queue for the script that lists queues: of a queue of the protocol, and of a
#: queue that may be of any other discipline.
LISTED = (
    *("bound", "data", "produced_messages", "consumed_messages"),
    *("closed", "in_flight", "readers", "rejected"),
    *("waiting", "producer_holder", "consumer_holder", "meta"),
)
LISTED_OWN = (*LISTED, "counts", "ready", "workers", "presence")
#: The keys that show whether a queue of the protocol is damaged; behind the counter are the keys
#: that `adopt` removes.
EXAMINED = (
    *("data", "producer", "closed", "deleting", "bound", "consumed_bytes"),
    *("meta", "done", "finished", "rejected", "users", "in_flight", "deliveries", "presence"),
    *("returned", "producers", "fetched", "readers", "uploads", "chunks"),
)
#: The keys that show whether a queue of another discipline is damaged.
EXAMINED_OWN = (
    *("meta", "bound", "data", "records", "payloads", "counts", "ready", "behind", "groups"),
    *("tubes", "due", "expiry", "taken", "bundles", "shelf", "produced_messages"),
)


@functools.cache
def load_for_broker(name: str, discipline: str = FIFO) -> Script:
    """Load a script that is for many queues, with the keys of all of them. Some scripts are for
    queues of one discipline."""
    text = (_ROOT / "broker" / f"{name}.lua").read_text(encoding="utf-8")
    return parse(name, text, _preludes(discipline), storage(FIFO))


@functools.cache
def storage(discipline: str) -> Storage:
    text = (_ROOT / discipline / "storage.lua").read_text(encoding="utf-8")
    header = dict(_HEADER.findall(text))
    return Storage(text, tuple(header.get("keys", "").split()), header["item"])


def _read(folder: resources.abc.Traversable) -> dict[str, str]:
    return {
        entry.name.removesuffix(".lua"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".lua")
    }


def read_bare(reply: Any) -> Any:
    """Read the reply of a script with ``bare: yes``; a list or an error stays as it is."""
    if type(reply) is bytes:
        return [DONE, reply]
    if reply is None:
        return [DECLINED]
    return [DONE] if reply == 1 else reply
