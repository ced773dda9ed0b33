"""A database: at the simulator, or at the cluster whose file ``PRESSURE_TEST_FDB`` names."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import fdb
import pytest
from brokers import foundationdb
from simulated_fdb.cluster import Faults
from simulated_fdb.simulation import Simulation

from pressure_mp.engines.foundationdb import client

fdb.api_version(client._VERSION)


@pytest.fixture(scope="session")
def cluster_file() -> Iterator[str]:
    with foundationdb.Foundation().serving() as broker:
        yield urlsplit(broker.url).path


@pytest.fixture
def database(cluster_file: str) -> Any:
    return fdb.open(cluster_file)


@pytest.fixture
def key(database: Any) -> Iterator[Callable[[bytes], bytes]]:
    """Makes a key that no other test has of the end of one."""
    prefix = b"pressure-test-" + secrets.token_hex(8).encode() + b"/"
    yield lambda end: prefix + end
    database.clear_range_startswith(prefix)


@pytest.fixture
def simulate() -> Iterator[Callable[..., Simulation]]:
    """Makes a simulation of a seed and the faults of its cluster."""
    if foundationdb.REAL:
        pytest.skip("is simulated")
    made: list[Simulation] = []

    def make(seed: int = 0, **faults: float) -> Simulation:
        made.append(Simulation(seed, Faults(**faults)))
        return made[-1]

    yield make
    for one in made:
        one.end()
