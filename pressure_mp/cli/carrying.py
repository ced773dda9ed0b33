"""Items on their way from one queue to another, or to a file: with their content, signed anew."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import click

from ..encoding import signing
from ..encoding.large import HEAD_SIZE, Large, is_manifest, read_unchecked
from ..engines.contract.queues import How
from ..exceptions import PressureError
from ..operations.control import FIFO
from ..operations.large import fetch
from .place import Named, Place

#: In these an item alone says where it is put.
_CARRIED = (FIFO, "lifo")
#: Items that are looked at, and put, at once.
_BATCH = 100


@dataclass(frozen=True)
class Carried:
    """An item as it was queued, and the segments of its content, if that was kept apart."""

    item: bytes
    content: Sequence[bytes | bytearray] | None = None


def _with_manifest(item: bytes, content: Sequence[bytes | bytearray]) -> Large:
    """A large item that keeps its manifest, and so its signature."""
    large = Large([memoryview(segment) for segment in content], bytes, False)
    large.manifest, large.token = item, read_unchecked(item).token
    return large


class Translator:
    """From what is right in one queue to what is right in another: the signature of an item is for
    the queue that it was put into."""

    def __init__(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Each is a prefix and a name."""
        self._is_same = source == target
        keys = signing.gather(None, False, os.environ)
        self._source = signing.Signer(keys, *source) if keys else None
        self._target = signing.Signer(keys, *target) if keys else None

    def translate(self, carried: Carried) -> bytes | Large:
        """The item for the target. Raises click.ClickException without the key, and
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
                f"an item is signed with key {key} for its queue; to sign it for the other one, "
                "set PRESSURE_AUTHKEY"
            )
        payload = self._source.check(signed)
        if content is None:
            return self._target.sign(payload)
        return Large([memoryview(segment) for segment in content], self._target.sign, True)


def context_of(queue: Named) -> tuple[str, str]:
    """What the signatures of a queue's items are for."""
    return queue.place.address.prefix, queue.name


def check_carried(queue: Named) -> Named:
    """A queue whose items can be carried. Raises click.ClickException."""
    if queue.discipline not in _CARRIED:
        raise click.ClickException(
            f"queue {queue.name!r} has the discipline {queue.discipline}: its items alone do not "
            "say where they belong, so they are carried by a program that knows it"
        )
    return queue


def look_at_all(queue: Named) -> Iterator[Carried]:
    """Every item of a queue, which stays, in the order in which they are to be put again. What
    comes and goes meanwhile may be among them or not."""
    if queue.discipline != FIFO:  # what is next was put last
        for item in reversed(queue.run(queue.items.peek_items(queue.stats().length or 1))):
            yield _with_content(queue, item)
        return
    start = 0
    while items := queue.run(queue.items.peek_items(_BATCH, start)):
        for item in items:
            yield _with_content(queue, item)
        start += len(items)


def _with_content(queue: Named, item: bytes) -> Carried:
    """An item that stays in its queue, and its content."""
    if not is_manifest(item):
        return Carried(item)
    try:
        manifest = read_unchecked(item)
    except ValueError:
        return Carried(item)  # it only looks like one
    content = queue.run(fetch(manifest))
    if content is None:
        raise click.ClickException(
            f"the content of an item of {manifest.size} bytes is gone: somebody got it just now"
        )
    return Carried(item, content)


def open_target(place: Place, name: str, discipline: str, maxsize: int) -> Named:
    """The queue that items are put into, which is created if it is not there."""
    if not place.exists(name):
        queue = place.named(name, discipline)
        queue.run(queue.items.open(How.CREATE, maxsize))
    return check_carried(place.find(name))


class Loader:
    """Puts items into a queue, and counts them."""

    def __init__(self, target: Named, translator: Translator) -> None:
        self._target = target
        self._translator = translator
        self.number = 0

    def load_all(self, items: Iterable[Carried]) -> None:
        """Put all of them, in order; waits while the queue is full."""
        batch: list[Carried] = []
        for carried in items:
            batch.append(carried)
            if len(batch) == _BATCH or carried.content is not None:
                self.load(batch)
                batch = []
        if batch:
            self.load(batch)

    def load(self, batch: Sequence[Carried]) -> None:
        """Put some. After an error ``number`` counts those that are in the queue."""
        items = [self._translator.translate(carried) for carried in batch]
        try:
            self._target.run(self._target.items.put_many(items, True, None))
        except PressureError as error:
            self.number += error.accepted
            raise
        self.number += len(batch)
