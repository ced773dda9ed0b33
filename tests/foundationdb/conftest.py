"""A database: at the simulator, or at the cluster whose file ``PRESSURE_TEST_FDB`` names."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import fdb
import pytest
from simulated_fdb.cluster import Cluster, Faults
from simulated_fdb.free import Free
from simulated_fdb.serving import served
from simulated_fdb.simulation import Simulation

fdb.api_version(730)

REAL = os.environ.get("PRESSURE_TEST_FDB")


@pytest.fixture(scope="session")
def cluster_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if REAL:
        yield REAL
        return
    path = str(tmp_path_factory.mktemp("cluster") / "fdb.cluster")
    with served(Cluster(Free()), path):
        yield path


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
    made: list[Simulation] = []

    def make(seed: int = 0, **faults: float) -> Simulation:
        made.append(Simulation(seed, Faults(**faults)))
        return made[-1]

    yield make
    for one in made:
        one.end()
