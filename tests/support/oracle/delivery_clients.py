"""A client that takes items and prefetches them, in the name of any owner."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from oracle import clients
from pressure_mp.effects import Operation
from pressure_mp.engines.contract.items import (
    EndPrefetch,
    EndPrefetchReply,
    Prefetch,
    PrefetchReply,
    Taken,
)
from pressure_mp.operations.deliveries import Delivery, DeliveryOperations

#: The requests of a reader that reserves items.
alone, end_alone = partial(Prefetch, alone=True), partial(EndPrefetch, alone=True)


def ended(request: EndPrefetch) -> Operation[int]:
    """End a prefetch; returns how many items of the reader count as handed out."""
    reply: EndPrefetchReply = yield request
    return reply.number


@dataclass
class Ahead:
    """What a reader has fetched: its last call, how many it handed out in all, and how many it did
    not."""

    call: int = 0
    handed: int = 0
    left: int = 0

    def hand_out(self, number: int) -> None:
        """Hand out so many items; a strange reader says so of more than it has. It has no fewer
        than none then: a request says of how many items it keeps, which is no negative number."""
        self.handed += number
        self.left = max(self.left - number, 0)


class Broker(clients.Client):
    """Operations in the name of any owner and of any reader; each call has the next number.

    ``size`` is that of the items which ``fill`` makes.
    """

    def __init__(self, url: str, name: str, size: int = 3) -> None:
        super().__init__(url, name)
        self.operations: DeliveryOperations = DeliveryOperations(name, "fifo")
        self.size = size
        self.calls = 0
        self.ahead: dict[str, Ahead] = {}

    def prefetch(
        self, reader: str, number: int = 1000, kept: int = 0, eof: bool = False
    ) -> PrefetchReply:
        """Hand out all but the last items, and fetch ``number`` behind these."""
        ahead = self.ahead.setdefault(reader, Ahead())
        self.calls += 1
        ahead.hand_out(ahead.left - kept)
        ahead.call = self.calls
        asking = Prefetch(reader, ahead.call, ahead.handed, kept, number, eof)
        reply: PrefetchReply = self.run(self.operations.prefetch(asking))
        if isinstance(reply, Taken):
            ahead.left += len(reply.items)
        return reply

    def fetch(self, reader: str, number: int = 1000, kept: int = 0) -> list[bytes]:
        """The items of :meth:`prefetch`."""
        reply = self.prefetch(reader, number, kept)
        assert isinstance(reply, Taken), reply
        return reply.items

    def take(self, owner: str, number: int = 1, **more: Any) -> list[Delivery]:
        self.calls += 1
        return self.run(
            self.operations.take_many(owner, self.calls, 0, number, False, None, **more)
        )

    def handed(self, reader: str, number: int) -> bool:
        """Hand out so many more, and tell; whether the reader still has its items."""
        ahead = self.ahead.setdefault(reader, Ahead())
        ahead.hand_out(number)
        telling = Prefetch(reader, ahead.call, ahead.handed, 0, 0)
        return bool(self.run(self.operations.prefetch(telling)) == Taken([]))

    def put_back(self, reader: str, number: int = 0, more_calls: int = 0) -> int:
        """Hand out so many more, and end; how many count in all. The reader made more calls that
        were not done yet."""
        ahead = self.ahead.setdefault(reader, Ahead())
        ahead.hand_out(number)
        ahead.left = 0
        ahead.call += more_calls
        self.calls = max(self.calls, ahead.call)
        return self.run(ended(EndPrefetch(reader, ahead.call, ahead.handed)))

    def requeue(self, owner: str, **which: Any) -> bool:
        return self.run(self.operations.requeue(owner, **which))

    def fill(self, count: int) -> list[bytes]:
        items = [(b"%03d" % number).ljust(self.size) for number in range(count)]
        self.run(self.operations.put_many(items, True, None))
        return items

    def drain(self) -> list[bytes]:
        return [self.get(False) for _ in range(self.length())]
