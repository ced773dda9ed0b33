"""The Lua files: their headers say which keys and arguments they take and what they return."""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
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
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Script:
    """One atomic operation."""

    name: str
    source: bytes
    sha: str
    keys: tuple[str, ...]
    is_given_key: bool
    """Whether its first key, which is not one of ``keys``, comes with each call: as the first of
    the arguments."""

    beside: tuple[str, ...]
    """The keys behind these that are not the queue's."""

    args: tuple[str, ...]
    replies: tuple[str, ...]
    once: bool
    """Whether it is done once, however often its call arrives."""

    in_lane: bool
    """Whether it takes the key and the number of a lane; what is done once does."""

    durable: bool
    """Whether its effect is confirmed by replicas or the disk, where the handle asks for it."""

    bare: bool
    """Whether it returns a string for ``done`` and that, 1 for ``done``, nothing for
    ``declined``: a list takes longer."""

    @property
    def wants_connection(self) -> bool:
        """Whether the last argument is the id of the caller's connection."""
        return self.args[-1:] == ("conn",)


@dataclass(frozen=True)
class Storage:
    """How a discipline keeps its items: a prelude, and the keys beside ``data`` that it wants."""

    source: str
    keys: tuple[str, ...]
    item: str
    """The list that has an element while an item is queued: who waits for one waits there."""


def parse(name: str, text: str, preludes: dict[str, str], storage: Storage) -> Script:
    """Read a file's header and put the preludes that it uses before it.

    The key ``item`` is the storage's list on which calls wait for an item.

    With the prelude ``storage`` the script takes those of the storage's keys that it names, after
    its own. A prelude that returns a reply, because the case is a simple one, spares what comes
    after it.
    """
    header = dict(_HEADER.findall(text))
    named = header.get("keys", "").split()
    keys = tuple(storage.item if key == "item" else key for key in named)
    is_given_key = "given" in header
    uses = header.get("uses", "").split()
    used = [storage.source if prelude == "storage" else preludes[prelude] for prelude in uses]
    named = _named(storage.keys, [*used, text]) if "storage" in uses else ()
    if named:
        first = len(keys) + is_given_key + 1
        last = first + len(named) - 1
        used.insert(0, f"local {', '.join(named)} = unpack(KEYS, {first}, {last})")
        keys += named
    beside = tuple(header.get("beside", "").split())
    if beside:
        first = len(keys) + is_given_key + 1
        last = first + len(beside) - 1
        used.insert(0, f"local {', '.join(beside)} = unpack(KEYS, {first}, {last})")
    whole = "\n".join([*used, text])
    once = "once" in header
    mending = "true" if header.get("once") == "mending" else "false"
    if once:
        begin = f"{preludes['once']}\nlocal function operation()\n"
        full = "true" if header.get("full") == "yes" else "false"
        whole = f"{begin}{whole}\nend\nreturn once(operation, {mending}, {full})\n"
    source = whole.encode()
    return Script(
        name=name,
        source=source,
        sha=hashlib.sha1(source, usedforsecurity=False).hexdigest(),
        keys=keys,
        is_given_key=is_given_key,
        beside=beside,
        args=tuple(header.get("args", "").split()),
        replies=tuple(reply.split()[0] for reply in header["replies"].split("|")),
        once=once,
        in_lane=once or header.get("lane") == "yes",
        durable=header.get("durable") == "yes",
        bare=header.get("bare") == "yes",
    )


def _named(keys: tuple[str, ...], sources: list[str]) -> tuple[str, ...]:
    """Those of the keys that Lua sources name outside of comments."""
    words = {word for source in sources for word in _WORD.findall(_COMMENT.sub("", source))}
    return tuple(key for key in keys if key in words)


#: The folders of scripts that a discipline takes beside its own: a queue of items, in whatever
#: order, is one with two roles. Tasks share only what every kind of queue has.
_SHARED_BY_ITEMS = ("common", "queue")
_SHARED_BY_OTHER_ORDERS = (*_SHARED_BY_ITEMS, "ordered")
_SHARED = {FIFO: _SHARED_BY_ITEMS, "tasks": ("common",)}


def folders(discipline: str) -> tuple[str, ...]:
    """The folders that have the scripts of a discipline."""
    return (*_SHARED.get(discipline, _SHARED_BY_OTHER_ORDERS), discipline)


@functools.cache
def names(folder: str) -> frozenset[str]:
    """The scripts that a folder has."""
    return frozenset(_read(_ROOT / folder)) - {"storage"}


@functools.cache
def load(discipline: str) -> dict[str, Script]:
    """Every script of a discipline, by the name of its operation."""
    preludes = _read(_ROOT / "prelude")
    if discipline != FIFO:
        preludes["incarnation"] = preludes["own_incarnation"]
    if "items" in storage(discipline).keys:
        preludes["contents"] = preludes["contents_apart"]
    texts: dict[str, str] = {}
    for folder in folders(discipline):
        texts |= _read(_ROOT / folder)
    del texts["storage"]
    kept = storage(discipline)
    return {name: parse(name, text, preludes, kept) for name, text in texts.items()}


#: The keys of each queue that the script gets that renews leases in several queues; the last is
#: the list on which calls wait for an item.
RENEWED = (
    *("bound", "consumed_bytes", "presence", "producers"),
    *("producer_free", "producer_claim", "producer_holder"),
    *("consumer_free", "consumer_claim", "consumer_holder"),
    *("waiting", "closed", "not_full", "producer", "consumer", "uploads"),
)
#: What the script that lists queues is given of each: of one of the protocol, and of one that may
#: be of any other discipline.
LISTED = (
    *("bound", "data", "produced_messages", "consumed_messages"),
    *("closed", "in_flight", "readers", "rejected"),
    *("waiting", "producer_holder", "consumer_holder", "meta"),
)
LISTED_OWN = (*LISTED, "counts", "ready")
#: The keys that tell whether a queue of the protocol is damaged; behind the counter are those that
#: `adopt` removes.
EXAMINED = (
    *("data", "producer", "closed", "deleting", "bound", "consumed_bytes"),
    *("meta", "done", "finished", "rejected", "users", "in_flight", "deliveries", "presence"),
    *("returned", "producers", "fetched", "readers", "uploads", "chunks"),
)
#: The same of one that is of another discipline.
EXAMINED_OWN = (
    *("meta", "bound", "data", "records", "payloads", "counts", "ready", "behind", "groups"),
    *("tubes", "due", "expiry", "taken", "bundles", "shelf", "produced_messages"),
)


@functools.cache
def load_for_broker(name: str) -> Script:
    """A script that is about no single queue: its keys are those of many."""
    text = (_ROOT / "broker" / f"{name}.lua").read_text(encoding="utf-8")
    return parse(name, text, _read(_ROOT / "prelude"), storage(FIFO))


@functools.cache
def storage(discipline: str) -> Storage:
    """How a discipline keeps its items."""
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
    """What a script with ``bare: yes`` says; a list or an error as it is."""
    if type(reply) is bytes:
        return [DONE, reply]
    if reply is None:
        return [DECLINED]
    return [DONE] if reply == 1 else reply
