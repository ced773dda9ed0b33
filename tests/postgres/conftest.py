"""What tests of this engine have in common: a server, a program, and its own connection."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from brokers import postgres as servers
from callers import Asyncio, Threads


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[servers.Postgres]:
    """A server that only the tests of one module use."""
    with servers.Postgres().serving() as server:
        yield server


@pytest.fixture(params=[Threads, Asyncio])
def caller(request: pytest.FixtureRequest) -> Iterator[Threads]:
    """A program with threads; and one with asyncio."""
    found: Threads = request.param()
    yield found
    found.end()


@pytest.fixture
def own(url: str) -> Iterator[psycopg.Connection]:
    """The connection of a program with threads."""
    with psycopg.connect(url) as found:
        yield found
        found.rollback()
