"""What a peer is to a workload."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, ClassVar, Protocol

from ..server import Site


def nothing() -> None:
    """For a queue that has nothing to send, give back or remove."""


@dataclass(frozen=True)
class Ends:
    """A queue's own methods, as one member of a workload calls them: no wrapper is measured."""

    put: Callable[[Any], object]
    get: Callable[[], Any]
    put_many: Callable[[list[Any]], object] | None = None
    get_many: Callable[[int], list[Any]] | None = None
    #: Returns when the queue has all that was put here and not got.
    close: Callable[[], object] = nothing


class SharedQueue(Protocol):
    """One queue of a peer. It is pickled to the processes of a workload."""

    def connect(self) -> Ends:
        """The queue's methods for the calling thread; its connections are made here."""

    def remove(self) -> None:
        """End what belongs to the queue, in the process that created it."""


@dataclass(frozen=True)
class Peer(ABC):
    """One way to hand items on. The docstring of each says how it is set up."""

    #: How the command line and the lists of workloads call it.
    key: str
    #: How the tables call it.
    title: str
    #: How many items one call puts or gets.
    batch: int = 1

    #: The distribution whose version is printed, and the module that it installs; None for
    #: what comes with Python.
    distribution: ClassVar[str | None] = None
    module: ClassVar[str | None] = None
    #: Whether a consumer that waits is a blocked client of the server.
    waits_at_server: ClassVar[bool] = True

    def missing(self) -> str | None:
        """Why it cannot be run here, or None."""
        if self.module is None:
            return None
        try:
            importlib.import_module(self.module)
        except ImportError as error:
            return f"`pip install {self.distribution}` is needed: {error}"
        return None

    def version(self) -> str | None:
        return metadata.version(self.distribution) if self.distribution else None

    @abstractmethod
    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> SharedQueue:
        """A new queue, for at most ``maxsize`` items of at most ``largest`` bytes; 0: any."""
