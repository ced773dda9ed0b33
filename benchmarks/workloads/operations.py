"""One process alone: the time of one put and one get."""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import dataclass
from typing import Any

from ..peers.base import Ends, Peer
from ..processes import Job, Member, perform
from ..server import Site
from .base import Measured, Workload, queues
from .transfer import put_all

#: Fills a list at the server with pickled ones, quickly.
FILL = """
local items = {}
for index = 1, 1000 do items[index] = ARGV[1] end
for _ = 1, tonumber(ARGV[2]) do redis.call('LPUSH', KEYS[1], unpack(items)) end
"""


@dataclass(frozen=True)
class Operations(Workload):
    """``timed`` says which is timed: ``put``, ``get``, or ``put+get``."""

    timed: str = "put+get"
    payload: int = 100

    @property
    def unit(self) -> str:
        return "items/s"

    def counts(self, peer: Peer) -> tuple[int, int]:
        return 20 * peer.batch, 400_000

    def run(self, peer: Peer, site: Site, count: int) -> Measured:
        count = count // peer.batch * peer.batch
        with queues(peer, site, 1, largest=self.payload) as (queue,):
            self.prepare(site, queue)
            ((put, get),) = perform(
                [Job(put_then_get, (queue, self.payload, count, peer.batch))], site.begin_process
            )
        seconds = {"put": put, "get": get, "put+get": put + get}[self.timed]
        return Measured(count / seconds, seconds)

    def prepare(self, site: Site, queue: Any) -> None:
        """Put the items that are in the queue before the run: none here."""


@dataclass(frozen=True)
class DeepQueue(Operations):
    """The same, on a queue in which ``depth`` small items wait."""

    depth: int = 1000

    def counts(self, peer: Peer) -> tuple[int, int]:
        return 2000, 2000

    def prepare(self, site: Site, queue: Any) -> None:
        # Behind the peer's back: to put so many would take longer than all the rest.
        step = min(self.depth, 1_000_000) // 1000
        with site.client() as client:
            for _ in range(self.depth // 1000 // step):
                client.eval(FILL, 1, queue.list, pickle.dumps(1, 5), step)


def put_then_get(
    member: Member, queue: Any, payload: int, count: int, batch: int
) -> tuple[float, float]:
    ends = member.connect(queue)
    item = os.urandom(payload)
    begin = member.start()
    put_all(ends, item, count, batch)
    middle = time.perf_counter()
    get_all(ends, count, batch)
    end = time.perf_counter()
    return middle - begin, end - middle


def get_all(ends: Ends, count: int, batch: int) -> None:
    if batch > 1:
        assert ends.get_many
        while count:
            count -= len(ends.get_many(min(batch, count)))
    else:
        get = ends.get
        for _ in range(count):
            get()


@dataclass(frozen=True)
class Unpickling(Workload):
    """How long a handle takes to arrive in another process, before its first use."""

    @property
    def unit(self) -> str:
        return "µs"

    def counts(self, peer: Peer) -> tuple[int, int]:
        return 100, 20_000

    def run(self, peer: Peer, site: Site, count: int) -> Measured:
        with queues(peer, site, 1) as (queue,):
            (seconds,) = perform([Job(unpickle, (pickle.dumps(queue), count))], site.begin_process)
        return Measured(seconds / count * 1e6, seconds)


def unpickle(member: Member, copy: bytes, count: int) -> float:
    begin = member.start()
    for _ in range(count):
        pickle.loads(copy)
    return time.perf_counter() - begin
