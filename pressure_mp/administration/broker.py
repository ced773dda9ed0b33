"""The broker that is administered, and the queues there by their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..drivers import drive
from ..effects import AnyOperation
from ..encoding.as_queued import AsQueued
from ..engines import registry
from ..engines.contract.address import Address
from ..engines.contract.brokers import DamagedPage, QueuePage, QueueSummary
from ..engines.contract.queues import Stats
from ..engines.contract.session import Binding, Options
from ..exceptions import ArgumentError, QueueDoesNotExistError
from ..operations.brokers import find_discipline, list_page
from ..operations.deliveries import DeliveryOperations
from ..operations.queues import QueueOperations
from ..operations.task_queue import TASKS
from ..operations.tasks import TaskOperations

T = TypeVar("T")
Page = TypeVar("Page", QueuePage, DamagedPage)

#: The disciplines that queues can have.
KINDS = ("fifo", "lifo", "priority", "fair", TASKS)

#: An operator waits for a silent broker for a shorter time than a program.
_OPTIONS = Options(reconnect=5.0)


@dataclass(frozen=True)
class Named:
    broker: Broker
    name: str
    discipline: str
    binding: Binding
    operations: QueueOperations

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.discipline

    @property
    def items(self) -> DeliveryOperations:
        """The operations of a queue of items. Raises ArgumentError for a queue of tasks."""
        if not isinstance(self.operations, DeliveryOperations):
            raise ArgumentError(
                f"{self.name!r} is a queue of tasks, and this is only for queues of items; "
                f"`pressure-mp tasks {self.name}` shows the tasks"
            )
        return self.operations

    @property
    def tasks(self) -> TaskOperations:
        """The operations of a queue of tasks. Raises ArgumentError for a queue of items."""
        if not isinstance(self.operations, TaskOperations):
            raise ArgumentError(
                f"{self.name!r} has the discipline {self.discipline}, and this is only for queues "
                "of tasks"
            )
        return self.operations

    @property
    def has_tasks(self) -> bool:
        return self.discipline == TASKS

    def run(self, operation: AnyOperation[T]) -> T:
        return drive(operation, self.binding.session())

    def stats(self) -> Stats:
        return self.run(self.items.stats())


class Broker:
    """A broker whose queues are looked at."""

    def __init__(
        self, url: str | None, prefix: str | None, environ: Mapping[str, str] = os.environ
    ) -> None:
        """Find the broker. ``url`` and ``prefix`` mean the same as for :class:`pressure_mp.Queue`.
        Raises AddressError."""
        self._given = {"url": url, "prefix": prefix}
        address = registry.resolve(url, prefix=prefix, environ=environ)
        self.check(address)
        self.address: Address = address.started()
        self.engine = registry.engine(self.address)

    def check(self, address: Address) -> None:
        """Refuse an address that cannot be used here."""

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that make a handle to a queue here."""
        return dict(self._given)

    def run(self, operation: AnyOperation[T]) -> T:
        """Run an operation on the broker, or an operation that names the binding of each step."""
        return drive(operation, self.engine.broker(_OPTIONS).session())

    def each_page(self, make: Callable[[str], AnyOperation[Page]]) -> Iterator[Page]:
        """Iterate over the pages that an operation returns, each behind the one before."""
        after = ""
        while True:
            page = self.run(make(after))
            yield page
            after = page.after
            if not after:
                return

    def pages(self) -> Iterator[list[QueueSummary]]:
        """Iterate over pages of the queues; each queue is in one page."""
        told: set[tuple[str, str]] = set()
        for page in self.each_page(list_page):
            new = {(one.name, one.discipline): one for one in page.queues}
            yield [one for key, one in new.items() if key not in told]
            told.update(new)

    def find(self, name: str) -> Named:
        """Return the queue of that name. Raises QueueDoesNotExistError."""
        return self.named(name, self.run(find_discipline(self.engine, name, _OPTIONS)))

    def named(self, name: str, discipline: str) -> Named:
        """Return the queue of that name and discipline, whether there is one or not."""
        binding = self.engine.bind(name, discipline, _OPTIONS)
        operations: QueueOperations
        if discipline == TASKS:
            operations = tasks = TaskOperations(name)
            tasks.codec = AsQueued(self.address.prefix, name)
        else:
            operations = DeliveryOperations(name, discipline)
        return Named(self, name, discipline, binding, operations)

    def exists(self, name: str) -> bool:
        try:
            self.find(name)
        except QueueDoesNotExistError:
            return False
        return True
