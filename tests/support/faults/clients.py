"""What the processes of the fault suite do; each writes down what it does (see histories.py)."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepwise import Closed, StepwiseClient
from waiting import Background

import pressure_mp
from faults.histories import BUSY, CLOSED, DONE, EMPTY, FENCED, FULL, UNKNOWN, Log
from pressure_mp import (
    BrokerUnavailable,
    ConsumerInUseError,
    Empty,
    Full,
    ProducerInUseError,
    Queue,
    ShutDown,
)

#: Seconds for which a client tries to make its first connection.
_PATIENCE = 10.0


def attach(kind: str, name: str, options: dict[str, Any]) -> Queue:
    """A handle; a first connection that the proxy cuts is tried again."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return getattr(pressure_mp, kind).attach(name, **options)
        except BrokerUnavailable:
            if time.monotonic() > until:
                raise


def message(item: str) -> bytes:
    """The bytes that are sent for an item: some are few, some more than a network packet holds."""
    chance = random.Random(item)
    return item.encode() + b" " + chance.randbytes(chance.choice([0, 10, 100, 3000]))


def name_of(received: bytes) -> str:
    """The item that was received; if it was damaged, an item that no client put."""
    item = received.partition(b" ")[0].decode(errors="replace")
    return item if received == message(item) else f"damaged-{item}"


def attempt(log: Log, kind: str, item: str, operation: Callable[[], bytes | None]) -> str | None:
    """Do it and write down what it came to; the item that was got, or None.

    The end of the queue is raised, after it was written down.
    """
    log.begin(kind, item)
    try:
        received = operation()
    except (ProducerInUseError, ConsumerInUseError):
        log.end(BUSY)
    except Full:
        log.end(FULL)
    except Empty:
        log.end(EMPTY)
    except BrokerUnavailable:
        log.end(UNKNOWN)
    except (ShutDown, Closed):
        log.end(CLOSED)
        raise
    else:
        got = "" if received is None else name_of(received)
        log.end(DONE, got)
        return got
    return None


def put(queue: Queue, log: Log, item: str, *how: Any) -> None:
    whole = message(item)
    attempt(log, "put", item, lambda: queue.put(whole, *how))


def get(queue: Queue, log: Log, *how: Any) -> str | None:
    return attempt(log, "get", "", lambda: queue.get(*how))


def shut_down(queue: Queue, directory: Path) -> None:
    """Shut the queue down; the test itself does it."""
    log = Log(directory, "test")
    log.begin("shutdown")
    queue.shutdown()
    log.end()
    log.close()


def drain(queue: Queue, directory: Path) -> None:
    """Get the rest of the items until the queue is shut down and empty; the test itself does it."""
    log = Log(directory, "drain")
    with suppress(ShutDown):
        while True:
            get(queue, log, True, 0.05)


def produce(log: Log, name: str, options: dict[str, Any], items: int) -> None:
    """Put so many items; end when the queue is shut down."""
    with attach("Queue", name, options) as queue, suppress(ShutDown):
        for number in range(items):
            put(queue, log, f"{log.client}-{number}")


def consume(log: Log, name: str, options: dict[str, Any]) -> None:
    """Get items until the queue is shut down and empty."""
    with attach("Queue", name, options) as queue, suppress(ShutDown):
        while True:
            get(queue, log)


def work(log: Log, name: str, options: dict[str, Any], seed: int) -> None:
    """Get items, work on some for a while, and acknowledge them; until the shutdown."""
    queue = attach("JoinableQueue", name, options)
    chance = random.Random(seed)
    ahead: list[str] = []
    while True:
        try:
            item = get(queue, log)
        except ShutDown:
            break
        if item is not None:
            ahead.append(item)
        if chance.random() < 0.1:
            time.sleep(chance.uniform(0, 0.01))
        while len(ahead) > chance.choice([0, 0, 0, 3]):
            acknowledge(queue, log, ahead.pop(0))
    for item in ahead:
        acknowledge(queue, log, item)


def acknowledge(queue: Queue, log: Log, item: str) -> None:
    log.begin("task_done", item)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        queue.task_done()
    log.end(FENCED if caught else DONE)


#: How an operation waits: not at all, for a short time, or until it is done.
_WAYS = [(False,), (True, 0.0), (True, 0.02), (True, 0.2), (True, None)]


def wander(
    log: Log, name: str, options: dict[str, Any], seed: int, operations: int, threads: int
) -> None:
    """In so many threads that share a handle: so many operations each, waiting or not."""
    queue = attach("Queue", name, options)
    wandering = [
        Background(_wander, queue, Log(log.directory, f"{log.client}-{n}"), seed + n, operations)
        for n in range(threads)
    ]
    for thread in wandering:
        thread.result(60)


def _wander(queue: Queue, log: Log, seed: int, operations: int) -> None:
    chance = random.Random(seed)
    for number in range(operations):
        how = chance.choice(_WAYS)
        try:
            if chance.random() < 0.5:
                put(queue, log, f"{log.client}-{number}", *how)
            else:
                get(queue, log, *how)
        except ShutDown:
            pass  # what comes now is to be refused, too
        if chance.random() < 0.2:
            time.sleep(chance.uniform(0, 0.01))


def wander_stepwise(log: Log, port: int, name: str, seed: int, operations: int) -> None:
    """The same, as another implementation; it ends when the queue is closed."""
    client = _Stepwise(log, port, name)
    chance = random.Random(seed)
    for number in range(operations):
        item = f"{log.client}-{number}"
        try:
            if chance.random() < 0.5:
                attempt(log, "put", item, lambda item=item: client.put(message(item)))
            else:
                attempt(log, "get", "", client.get)
        except Closed:
            return
        time.sleep(chance.uniform(0, 0.02))


class _Stepwise(StepwiseClient):
    """It writes down when it certainly has a role."""

    def __init__(self, log: Log, port: int, name: str) -> None:
        super().__init__(port, name, identity=log.client)
        self._roles = Log(log.directory, log.client, "roles")

    def take(self, role: str) -> None:
        super().take(role)
        self._roles.begin(role)

    def give_back(self, role: str) -> None:
        self._roles.end()
        super().give_back(role)
