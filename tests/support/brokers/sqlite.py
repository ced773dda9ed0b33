"""A file of SQLite."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from brokers.kv import StoredBroker


class Sqlite(StoredBroker):
    """A file in a directory of its own."""

    scheme = "sqlite"
    pace = 0.3

    def start(self) -> Sqlite:
        self.directory = tempfile.mkdtemp(prefix="pressure-sqlite-")
        return self

    def stop(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def url(self) -> str:
        return f"sqlite://{self.directory}/queues"

    @contextmanager
    def alone(self, name: str) -> Iterator[str]:
        yield f"sqlite://{self.directory}/{name}"
