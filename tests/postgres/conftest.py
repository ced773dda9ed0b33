"""What tests of transactions have in common: a program, and its own connection."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from callers import Asyncio, Threads


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
