"""A simulated cluster of FoundationDB."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from simulated_fdb.cluster import Cluster
from simulated_fdb.free import Free
from simulated_fdb.serving import served

from brokers.kv import StoredBroker


class Foundation(StoredBroker):
    """A cluster in this process, which others reach by a socket."""

    scheme = "foundationdb"
    pace = 0.1

    @staticmethod
    def is_there() -> bool:
        return importlib.util.find_spec("fdb") is not None

    def start(self) -> Foundation:
        self._open = ExitStack()
        self.directory = tempfile.mkdtemp(prefix="pressure-fdb-")
        self._open.callback(shutil.rmtree, self.directory)
        self.cluster = Cluster(Free())
        self._open.enter_context(served(self.cluster, self.path("cluster")))
        return self

    def stop(self) -> None:
        self._open.close()

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    @property
    def url(self) -> str:
        return f"foundationdb://{self.path('cluster')}"

    @contextmanager
    def alone(self, name: str) -> Iterator[str]:
        with served(self.cluster, self.path(name)):
            yield f"foundationdb://{self.path(name)}"
