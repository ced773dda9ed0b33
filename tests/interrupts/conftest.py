"""How many places are tried: some, beginning anywhere, or with ``--every-place`` each of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import interrupting
import pytest
from brokers.servers import Server


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interrupts")
    group.addoption("--every-place", action="store_true", help="interrupt calls at each place")


@pytest.fixture
def server(valkey: Server) -> Server:
    """One kind of server is enough: these tests interrupt the client."""
    return valkey


@pytest.fixture
def sweep(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Interrupts a call at its places; with ``every`` only at some of them, in a short run."""

    def sweep(*args: Any, every: int = 1, **options: Any) -> None:
        if request.config.getoption("--every-place", default=False):
            every = 1
        else:  # each run begins anywhere: in time all are tried
            every *= 3
        first = random.randrange(every)
        places = interrupting.sweep(*args, every=every, first=first, **options)
        assert places
        print(f"{request.node.name}: {places} places")

    return sweep
