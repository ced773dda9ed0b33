"""A simulated cluster of FoundationDB, or the one whose file ``PRESSURE_TEST_FDB`` names."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from simulated_fdb.cluster import Cluster, Faults
from simulated_fdb.free import Free
from simulated_fdb.serving import served

from brokers.kv import StoredBroker

#: The cluster file of a real cluster, if there is one.
REAL = os.environ.get("PRESSURE_TEST_FDB")


def _faults() -> Faults:
    """The faults of the simulated cluster, such as ``refused=0.1,too_old=0.1``."""
    asked = os.environ.get("PRESSURE_TEST_FDB_FAULTS")
    named = (one.split("=") for one in asked.split(",")) if asked else ()
    return Faults(**{name: float(probability) for name, probability in named})


class Foundation(StoredBroker):
    """A simulated cluster is in this process, and others reach it by a socket."""

    scheme = "foundationdb"
    pace = 0.1

    @staticmethod
    def is_there() -> bool:
        return importlib.util.find_spec("fdb") is not None

    def start(self) -> Foundation:
        self._open = ExitStack()
        if REAL:
            return self
        self.directory = tempfile.mkdtemp(prefix="pressure-fdb-")
        self._open.callback(shutil.rmtree, self.directory)
        self.cluster = Cluster(Free(), faults=_faults())
        self._open.enter_context(served(self.cluster, self.path("cluster")))
        return self

    def stop(self) -> None:
        self._open.close()

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    @property
    def url(self) -> str:
        return f"foundationdb://{REAL or self.path('cluster')}"

    @contextmanager
    def alone(self, name: str) -> Iterator[str]:
        if REAL:
            yield self.url
            return
        with served(self.cluster, self.path(name)):
            yield f"foundationdb://{self.path(name)}"
