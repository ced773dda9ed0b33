"""The base class of workloads: a workload uses a queue of each of its peers, and takes the time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..peers.base import Peer, SharedQueue
from ..server import Site

#: The item that says that no more items come.
END = None
#: Bytes that one run moves at most, and the first that tells how fast it is; but for two items.
MOST_BYTES = 256 << 20
TRIAL_BYTES = 16 << 20


@dataclass(frozen=True)
class Measured:
    """One run of a case: its figure, how long the timed part was, and single times if it has."""

    value: float
    seconds: float
    times: tuple[float, ...] = ()


@dataclass(frozen=True)
class Workload(ABC):
    #: How the command line calls it.
    key: str
    #: How its column is headed.
    title: str
    #: The keys of the peers that do it.
    peers: tuple[str, ...]
    #: Whether the server and all processes share one processor.
    on_one_processor: bool = field(default=False, kw_only=True)
    #: How many times as long one run lasts as a run of other workloads: the begin and the end of
    #: its processes are not to count.
    times_as_long: int = field(default=1, kw_only=True)
    #: How many rounds do it at most: few, if one run takes long by its nature.
    rounds: int = field(default=100, kw_only=True)

    @property
    @abstractmethod
    def unit(self) -> str:
        """What the figure counts: ``items/s`` or ``µs``."""

    @abstractmethod
    def run(self, peer: Peer, site: Site, count: int) -> Measured:
        """Do it once, with ``count`` items, processes and all."""

    @abstractmethod
    def counts(self, peer: Peer) -> tuple[int, int]:
        """The fewest and the most items of one run; equal when the number is not to be tuned."""


@contextmanager
def queues(
    peer: Peer, site: Site, number: int, maxsize: int = 0, largest: int = 0
) -> Iterator[list[SharedQueue]]:
    """New queues, gone afterwards with all that was in them."""
    created: list[SharedQueue] = []
    try:
        for _ in range(number):
            created.append(peer.create(site, maxsize, largest))
        yield created
    finally:
        for queue in created:
            queue.remove()
        site.clear()


def size(number: int) -> str:
    """Bytes as people write them."""
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if number >= unit:
            return f"{number // unit} {name}"
    return f"{number} B"
