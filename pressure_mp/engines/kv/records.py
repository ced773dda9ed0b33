"""Values: a line of JSON, and behind it the bytes that belong to the record.

A person can read the JSON with the tools of the store. Reading a value runs no code of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from ..contract.task_results import Notice, Result
from ..requests.ready_tasks import Group
from ..requests.results import Inbox, Kept
from ..requests.state import Delivery, Reader
from ..requests.storage import Entry, Tenant
from ..requests.unique_keys import Holder

T = TypeVar("T")

_to_json, _from_json = json.JSONEncoder(separators=(",", ":")).encode, json.JSONDecoder().decode


def dump(fields: Any, *blobs: bytes) -> bytes:
    """Make a value of fields that JSON has, and of bytes."""
    return b"".join((_to_json([fields, *map(len, blobs)]).encode(), b"\n", *blobs))


def load(raw: bytes) -> tuple[Any, list[bytes]]:
    """Return the fields of a value, and its bytes."""
    start = raw.index(b"\n") + 1
    fields, *sizes = _from_json(raw[:start].decode())
    blobs = []
    for size in sizes:
        blobs.append(raw[start : start + size])
        start += size
    return fields, blobs


@dataclass(frozen=True)
class Kind(Generic[T]):
    """How records of one kind become values."""

    dump: Callable[[T], bytes]
    load: Callable[[bytes], T]


def fields(record: object) -> list[object]:
    """Return the values of a dataclass: ``astuple`` copies each entry of a log."""
    return list(vars(record).values())


def _plain(make: Callable[..., T]) -> Kind[T]:
    """The kind of a dataclass without bytes."""
    return Kind(lambda one: dump(fields(one)), lambda raw: make(*load(raw)[0]))


def dump_entry(entry: Entry) -> bytes:
    item, *fields = entry
    return _entry_line(*fields, len(item)) + item


def load_entry(raw: bytes) -> Entry:
    start = raw.index(b"\n") + 1
    return Entry(raw[start:], *_entry_fields(raw[:start]))


@lru_cache(256)  # most items of a queue have the same fields
def _entry_line(number: int, deliveries: int, size: int) -> bytes:
    return b"%b\n" % _to_json([[number, deliveries], size]).encode()


@lru_cache(256)
def _entry_fields(line: bytes) -> tuple[Any, ...]:
    fields, _ = _from_json(line.decode())
    return tuple(fields)


def _dump_delivery(one: Delivery) -> bytes:
    item, *rest = one.entry
    return dump([rest, one.owner, one.call, one.limit, one.token, one.passed], item)


def _load_delivery(raw: bytes) -> Delivery:
    (rest, *fields), (item,) = load(raw)
    return Delivery(Entry(item, *rest), *fields)


def _dump_reader(one: Reader) -> bytes:
    left = [entry[1:] for entry in one.left]
    return dump([one.call, one.handed, one.until, left], *(entry.item for entry in one.left))


def _load_reader(raw: bytes) -> Reader:
    (call, handed, until, left), items = load(raw)
    return Reader(call, [Entry(item, *rest) for item, rest in zip(items, left)], handed, until)  # noqa: B905


def _dump_notice(one: Notice) -> bytes:
    return dump([one.number, one.event, one.deliveries, one.report], one.id)


def _load_notice(raw: bytes) -> Notice:
    (number, *fields), (id,) = load(raw)
    return Notice(number, id, *fields)


def _dump_kept(one: Kept) -> bytes:
    data, *rest = one.result
    return dump([one.outcome, one.inbox, one.number, one.end, rest], data)


def _load_kept(raw: bytes) -> Kept:
    (*fields, rest), (data,) = load(raw)
    outcome, inbox, number, end = fields
    return Kept(outcome, inbox, number, end, Result(data, *rest))


def _load_group(raw: bytes) -> Group:
    (last, taken, first, *limited), ids = load(raw)
    group = Group(last, taken, (first[0], first[1], ids[0]) if ids else None)
    if limited:
        group.log, (*look,) = limited
        group.look = (look[0], look[1]) if look else None
    return group


def _dump_group(one: Group) -> bytes:
    first = one.first
    limited = [one.log, one.look or ()] if one.log or one.look else []
    return dump(
        [one.last, one.taken, first and first[:2], *limited], *([first[2]] if first else [])
    )


def _dump_holder(one: Holder) -> bytes:
    return dump([one.end, one.is_held], one.id)


def _load_holder(raw: bytes) -> Holder:
    fields, (id,) = load(raw)
    return Holder(id, *fields)


RAW: Kind[bytes] = Kind(bytes, bytes)
JSON: Kind[Any] = Kind(dump, lambda raw: load(raw)[0])
DELIVERY = Kind(_dump_delivery, _load_delivery)
READER = Kind(_dump_reader, _load_reader)
NOTICE = Kind(_dump_notice, _load_notice)
KEPT = Kind(_dump_kept, _load_kept)
INBOX = _plain(Inbox)
GROUP = Kind(_dump_group, _load_group)
HOLDER = Kind(_dump_holder, _load_holder)
TENANT = _plain(Tenant)
