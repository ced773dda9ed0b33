"""Servers that histories may restart, and which histories there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import engines
import pytest
from brokers.broker import Broker
from engines import Can
from process_histories.actors import First


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--history", type=Path, help="run the history in this file, step by step")


@pytest.fixture(params=engines.able(Can.SERVER), ids=str, scope="module")
def durable(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A server of each kind that has on disk what it acknowledged, so that it may be killed."""
    with request.param.make(durable=True).serving() as server:
        yield server


@pytest.fixture(scope="module")
def first() -> Iterator[First]:
    with First() as starting:
        yield starting
