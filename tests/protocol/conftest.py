"""Fixtures for the protocol: our client and other implementations, on one queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis
from brokers.servers import Server
from stepwise import StepwiseClient
from waiting import HOURS, blocked, lasting, until

from pressure_mp import PressureQueue


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    """redis-py, to look at the keys of the server."""
    with server.client() as client:
        yield client


@pytest.fixture
def lease(request: pytest.FixtureRequest) -> float:
    """Seconds of a lease. It is never renewed in a test in which no call may look by itself."""
    return 3 * HOURS if "no_ticks" in request.fixturenames else 5.0


@pytest.fixture
def ours(server: Server, name: str, lease: float) -> PressureQueue:
    """Our client of the queue. Threads may share it."""
    return PressureQueue(name, url=server.url, lease=lease)


@pytest.fixture
def theirs(server: Server, name: str) -> Iterator[Callable[..., StepwiseClient]]:
    """Makes other implementations for the same queue; all are ended with the test."""
    made: list[StepwiseClient] = []

    def make(**options: object) -> StepwiseClient:
        made.append(StepwiseClient(server.port, name, **options))
        return made[-1]

    yield make
    for one in made:
        one.abort()


@pytest.fixture
def parked(client: redis.Redis) -> Callable[..., None]:
    """Waits until ``count`` more connections are blocked than when the test began."""
    before = blocked(client)

    def wait(count: int = 1) -> None:
        until(lambda: blocked(client) == before + count)

    return wait


@pytest.fixture
def contents(client: redis.Redis, name: str) -> Callable[[], dict[str, object]]:
    """The server's keys under the queue's name: the key's suffix, and the value.

    Of lists other than the queue's own, whose elements mean nothing, it is the type and the
    length. The queue's own list is shown as it is: the newest item first.
    """
    prefix = f"__pressure__:{name}"

    def read() -> dict[str, object]:
        found: dict[str, object] = {}
        for key in lasting(client, f"{prefix}*"):
            suffix = key.decode().removeprefix(prefix)
            kind = client.type(key).decode()
            if kind == "string":
                found[suffix] = client.get(key)
            elif kind == "list":
                values = client.lrange(key, 0, -1)
                found[suffix or "queue"] = values if suffix == "" else ("list", len(values))
            else:
                found[suffix] = kind
        return found

    return read


@pytest.fixture
def protocol_keys(contents: Callable[[], dict[str, object]]) -> Callable[[], dict[str, object]]:
    """The same, of the specification's twelve keys only."""

    def read() -> dict[str, object]:
        return {key: value for key, value in contents().items() if not key.startswith(":mp:")}

    return read


@pytest.fixture
def tokens(client: redis.Redis, name: str) -> Callable[[], tuple[int, int]]:
    """How many elements ``:producer_free`` and ``:consumer_free`` have, at one moment."""

    def read() -> tuple[int, int]:
        with client.pipeline() as both:
            both.llen(f"__pressure__:{name}:producer_free")
            both.llen(f"__pressure__:{name}:consumer_free")
            producer, consumer = both.execute()
        return producer, consumer

    return read
