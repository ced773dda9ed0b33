"""A client that takes items and fetches them ahead, in the name of whom it likes."""

from __future__ import annotations

from typing import Any

from oracle import clients
from pressure_mp.operations.deliveries import Delivery, DeliveryOperations


class Broker(clients.Client):
    """Operations in the name of any owner and of any reader; each call has the next number.

    ``size`` is that of the items which ``fill`` makes.
    """

    def __init__(self, url: str, name: str, size: int = 3) -> None:
        super().__init__(url, name)
        self.operations: DeliveryOperations = DeliveryOperations(name, "fifo")
        self.size = size
        self.calls = 0

    def fetch(
        self, reader: str, number: int = 1000, block: bool = False, eof: bool = False
    ) -> list[bytes] | None:
        self.calls += 1
        return self.run(self.operations.prefetch(reader, self.calls, number, block, None, eof))

    def take(self, owner: str, number: int = 1, **more: Any) -> list[Delivery]:
        self.calls += 1
        return self.run(
            self.operations.take_many(owner, self.calls, 0, number, False, None, **more)
        )

    def handed(self, reader: str, call: int, number: int) -> bool:
        return self.run(self.operations.handed(reader, call, number))

    def put_back(self, reader: str, call: int, number: int) -> bool:
        return self.run(self.operations.put_back(reader, call, number))

    def requeue(self, owner: str, **which: Any) -> bool:
        return self.run(self.operations.requeue(owner, **which))

    def fill(self, count: int) -> list[bytes]:
        items = [(b"%03d" % number).ljust(self.size) for number in range(count)]
        self.run(self.operations.put_many(items, True, None))
        return items

    def drain(self) -> list[bytes]:
        return [self.get(False) for _ in range(self.length())]
