"""Servers that histories may restart, and which histories there are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brokers import postgres as postgres_servers
from brokers.postgres import Postgres
from brokers.servers import Server
from process_histories.actors import First

_ASKED = os.environ.get("PRESSURE_TEST_SERVERS", "valkey,redis,postgres").split(",")
DURABLE = [kind for kind in _ASKED if kind != "postgres" or postgres_servers.is_there()]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--history", type=Path, help="run the history in this file, step by step")


@pytest.fixture(params=DURABLE, scope="module")
def durable(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A server of each kind that has on disk what it acknowledged, so that it may be killed."""
    if request.param == "postgres":
        server: Any = Postgres("fsync=on", "full_page_writes=on")
    else:
        server = Server(request.param, ("--appendonly", "yes", "--appendfsync", "always"))
    try:
        server.start()
        if request.param == "postgres":
            postgres_servers.prepare(server)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def first() -> Iterator[First]:
    with First() as starting:
        yield starting
