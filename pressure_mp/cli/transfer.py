"""Carry items from one queue to another, or to a file: with their content, signed anew."""

from __future__ import annotations

import base64
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from ..administration.repair import return_lost
from ..encoding import signing
from ..encoding.large import HEAD_SIZE, Large, is_manifest, read_unchecked
from ..engines.contract.items import Placed
from ..engines.contract.queues import How
from ..exceptions import Empty, PressureError, ShutDown
from ..operations.control import FIFO
from ..operations.large import fetch
from ..sync.forwarding import Forwarder, NextIsLarge
from .broker import Broker, Named

#: Disciplines in which an item goes to the end.
_PLACELESS = (FIFO, "lifo")
#: Items that one call peeks or puts.
_BATCH = 100
#: How often in a row another item than was peeked may be next before a move gives up.
_MOST_MISSES = 1000


@dataclass(frozen=True)
class Carried:
    """An item as it was queued; the segments of its content, if that was kept apart; and where it
    belongs, in a discipline that needs to know."""

    item: bytes
    content: Sequence[bytes | bytearray] | None = None
    sort_key: bytes = b""

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"item": to_text(self.item)}
        if self.content is not None:
            found["content"] = [to_text(segment) for segment in self.content]
        if self.sort_key:
            found["place"] = to_text(self.sort_key)
        return found

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Carried:
        content = value.get("content")
        return cls(
            to_bytes(value["item"]),
            None if content is None else [bytearray(to_bytes(segment)) for segment in content],
            to_bytes(value.get("place", "")),
        )


def to_text(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode()


to_bytes = base64.b64decode


def _with_manifest(item: bytes, content: Sequence[bytes | bytearray]) -> Large:
    """Make a large item that keeps its manifest, and so its signature."""
    large = Large([memoryview(segment) for segment in content], bytes, False)
    large.manifest, large.token = item, read_unchecked(item).token
    return large


class Translator:
    """Signs the items of one queue anew for another: a signature is for the queue that an item was
    put into."""

    def __init__(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Make a translator between two queues, each given by prefix and name."""
        self._is_same = source == target
        keys = signing.gather(None, False, os.environ)
        self._source = signing.Signer(keys, *source) if keys else None
        self._target = signing.Signer(keys, *target) if keys else None

    def translate(self, carried: Carried) -> bytes | Large:
        """Return the item for the target. Raises click.ClickException without the key, and
        AuthenticationError for an item that was forged."""
        item, content = carried.item, carried.content
        signed = item[HEAD_SIZE:] if content is not None else item
        key, _ = signing.take_apart(signed)
        if key is not None and self._is_same:
            return item if content is None else _with_manifest(item, content)
        if key is None:
            if content is None:
                return item
            return Large([memoryview(segment) for segment in content], bytes, False)
        if self._source is None or self._target is None:
            raise click.ClickException(
                f"an item is signed with key {key} for its queue; to sign it for the target, set "
                "PRESSURE_AUTHKEY"
            )
        payload = self._source.check(signed)
        if content is None:
            return self._target.sign(payload)
        return Large([memoryview(segment) for segment in content], self._target.sign, True)


def context_of(queue: Named) -> tuple[str, str]:
    """Return the prefix and name that the signatures of a queue's items are made for."""
    return queue.broker.address.prefix, queue.name


def carry_all(queue: Named) -> Iterator[Carried]:
    """Iterate over the items of a queue, which stay, in the order in which they are to be put
    again. Items that come or go meanwhile may be among them or not."""
    if queue.discipline == "lifo":  # the next item was put last
        for item in reversed(queue.run(queue.items.peek_items(queue.stats().length or 1))):
            yield _with_content(queue, Placed(item, b""))
        return
    start = 0
    while items := queue.run(queue.items.peek_placed(_BATCH, start)):
        for placed in items:
            yield _with_content(queue, placed)
        start += len(items)


def _with_content(queue: Named, placed: Placed) -> Carried:
    """Return an item that stays in its queue, with its content."""
    item, sort_key = placed
    if not is_manifest(item):
        return Carried(item, None, sort_key)
    try:
        manifest = read_unchecked(item)
    except ValueError:
        return Carried(item, None, sort_key)  # it only looks like a manifest
    content = queue.run(fetch(manifest))
    if content is None:
        raise click.ClickException(
            f"the content of an item of {manifest.size} bytes is gone: a consumer has just got it"
        )
    return Carried(item, content, sort_key)


def settings_of(queue: Named) -> dict[str, Any]:
    """Return the settings to create a queue like it."""
    return {"maxsize": queue.stats().maxsize}


def open_target(broker: Broker, name: str, discipline: str, settings: Mapping[str, Any]) -> Named:
    """Open the queue to put items of that discipline into, and create it if it is not there. Raises
    click.ClickException if these items cannot be put into it."""
    if not broker.exists(name):
        queue = broker.named(name, discipline)
        queue.run(queue.items.open(How.CREATE, settings["maxsize"]))
    target = broker.find(name)
    if target.discipline not in (*_PLACELESS, discipline):
        raise click.ClickException(
            f"queue {name!r} has the discipline {target.discipline}, and an item of the discipline "
            f"{discipline} does not say where it belongs there"
        )
    return target


class Loader:
    """Puts items into a queue, and counts them."""

    def __init__(self, target: Named, translator: Translator) -> None:
        self._target = target
        self._translator = translator
        self.number = 0

    def load_all(self, items: Iterable[Carried]) -> None:
        """Put all items, in order; waits while the queue is full."""
        batch: list[Carried] = []
        for carried in items:
            batch.append(carried)
            if len(batch) == _BATCH or carried.content is not None:
                self.load(batch)
                batch = []
        if batch:
            self.load(batch)

    def load(self, batch: Sequence[Carried]) -> None:
        """Put items. After an error ``number`` counts the items that are in the queue."""
        items = [self._translator.translate(carried) for carried in batch]
        is_placed = self._target.discipline not in _PLACELESS
        places = [carried.sort_key for carried in batch] if is_placed else []
        try:
            self._target.run(self._target.items.put_many(items, True, None, places))
        except PressureError as error:
            self.number += error.accepted
            raise
        self.number += len(batch)


def move_all(queue: Named, loader: Loader, limit: int | None) -> None:
    """Move the queued items, at most ``limit``: each leaves its queue when it is in the other one.
    The items that a killed move had in flight are moved first."""
    return_lost(queue)
    with Forwarder(queue.name, queue.discipline, queue.broker.options) as forwarder:
        mover = _Mover(queue, forwarder, loader)
        try:
            while limit is None or loader.number < limit:
                left = None if limit is None else limit - loader.number
                try:
                    forwarder.forward(mover.load, left, 0)
                except NextIsLarge:
                    forwarder.forward_one(mover.load, 0)
                mover.check()
        except (Empty, ShutDown):
            pass


class _Mover:
    """Puts the items that are passed on."""

    def __init__(self, queue: Named, forwarder: Forwarder, loader: Loader) -> None:
        self._queue = queue
        self._forwarder = forwarder
        self._loader = loader
        self._problem: BaseException | None = None
        #: The next items and where they belong, in a discipline that needs to know.
        self._next: deque[Placed] = deque()
        self._misses = 0

    def load(self, items: list[bytes]) -> int:
        """Put items; return how many are in the queue."""
        before = self._loader.number
        try:
            if self._queue.discipline in _PLACELESS:
                self._loader.load([self._carried(item, b"") for item in items])
            else:
                self._load_placed(items[0])
        except BaseException as error:
            self._problem = error
        return self._loader.number - before

    def _load_placed(self, item: bytes) -> None:
        """Put an item where it belongs. It was peeked before it was taken: it is the next, unless
        another client got the peeked item, or an item that goes before it came in between."""
        found = self._next.popleft() if self._next else None
        if found is not None and found.item == item:
            self._misses = 0
            self._loader.load([self._carried(item, found.sort_key)])
            return
        self._misses += 1
        if self._misses == _MOST_MISSES:
            raise click.ClickException(
                f"other programs put into {self._queue.name!r} and get from it: stop them, "
                "and then move the rest"
            )
        self._next.clear()

    def _carried(self, item: bytes, sort_key: bytes) -> Carried:
        content = self._forwarder.fetch(item) if is_manifest(item) else None
        return Carried(item, content, sort_key)

    def check(self) -> None:
        """Raise the error of the last items; peek the next ones."""
        if self._problem is not None:
            raise self._problem
        if not self._next and self._queue.discipline not in _PLACELESS:
            self._next.extend(self._queue.run(self._queue.items.peek_placed(_BATCH)))
