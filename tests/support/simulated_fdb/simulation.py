"""A cluster and its clients, whose every step a seed says."""

from __future__ import annotations

import itertools
import random
from typing import Any

import fdb

from simulated_fdb import addresses
from simulated_fdb.cluster import Cluster, Faults
from simulated_fdb.scheduling import Scheduler

_numbers = itertools.count()


class Simulation:
    """One history."""

    def __init__(self, seed: int, faults: Faults | None = None, most_steps: int = 200_000) -> None:
        self.rng = random.Random(seed)
        self.scheduler = Scheduler(self.rng, most_steps)
        self.cluster = Cluster(self.scheduler, self.rng, faults)
        #: The path of its cluster file, which is not there.
        self.path = f"/simulated/{next(_numbers)}"
        addresses.here[self.path] = self.cluster

    def database(self) -> Any:
        """A client's own."""
        return fdb.impl.create_database(self.path)

    def end(self) -> None:
        del addresses.here[self.path]
