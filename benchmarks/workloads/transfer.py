"""Items from so many producers to so many consumers, each a process: the throughput."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass

from ..crew import CaseFailed, Job, Member, perform
from ..peers.base import Ends, Peer, SharedQueue
from ..server import Site
from .base import END, MOST_BYTES, TRIAL_BYTES, Measured, Workload, queues

#: With more members than this, a case begins and ends too slowly to be tried out first.
CROWD = 12
CROWDS_ITEMS = 4096


@dataclass(frozen=True)
class Transfer(Workload):
    producers: int = 1
    consumers: int = 1
    payload: int = 100
    maxsize: int = 0

    @property
    def unit(self) -> str:
        return "items/s"

    def counts(self, peer: Peer) -> tuple[int, int]:
        if self.producers + self.consumers > CROWD:
            return CROWDS_ITEMS, CROWDS_ITEMS
        # Each producer puts whole batches.
        step = peer.batch * self.producers
        most = max(2 * step, min(2_000_000, MOST_BYTES // self.payload))
        trial = max(2 * step, min(20 * self.producers, TRIAL_BYTES // self.payload))
        return trial, most

    def run(self, peer: Peer, site: Site, count: int) -> Measured:
        step = peer.batch * self.producers
        each = max(1, count // step) * peer.batch
        with queues(peer, site, 1, self.maxsize, self.payload) as (queue,):
            answers = perform(self._jobs(peer, queue, each))
        begins, ends = answers[: self.producers], answers[self.producers :]
        arrived = sum(number for number, _ in ends)
        if arrived != each * self.producers:
            raise CaseFailed(f"{each * self.producers} items were put, {arrived} were got")
        seconds = max(end for _, end in ends) - min(begins)
        return Measured(arrived / seconds, seconds)

    def _jobs(self, peer: Peer, queue: SharedQueue, each: int) -> list[Job]:
        # As many END as producers and as consumers need, at the end of each producer's items:
        # when the last one is got, all items are.
        ends = math.lcm(self.producers, self.consumers)
        puts = (queue, self.payload, each, peer.batch, ends // self.producers)
        gets = (queue, peer.batch, ends // self.consumers)
        return [Job(produce, puts)] * self.producers + [Job(consume, gets)] * self.consumers


def produce(
    member: Member, queue: SharedQueue, payload: int, count: int, batch: int, marks: int
) -> float:
    """Put so many items, then so many END; the time at which it began."""
    ends = member.connect(queue)
    item = os.urandom(payload)
    begin = member.start()
    put_all(ends, item, count, batch)
    for _ in range(marks):
        ends.put(END)
    return begin


def put_all(ends: Ends, item: object, count: int, batch: int) -> None:
    if batch > 1:
        assert ends.put_many
        items = [item] * batch
        for _ in range(count // batch):
            ends.put_many(items)
    else:
        put = ends.put
        for _ in range(count):
            put(item)


def consume(member: Member, queue: SharedQueue, batch: int, marks: int) -> tuple[int, float]:
    """Get until so many END came; how many items, and the time at which the last END came."""
    ends = member.connect(queue)
    member.start()
    found = get_batches(ends, batch, marks) if batch > 1 else get_singly(ends, marks)
    return found, time.perf_counter()


def get_singly(ends: Ends, marks: int) -> int:
    get, found = ends.get, 0
    for _ in range(marks):
        while get() is not END:
            found += 1
    return found


def get_batches(ends: Ends, batch: int, marks: int) -> int:
    assert ends.get_many
    found = 0
    while marks > 0:
        items = ends.get_many(batch)
        found += len(items)
        if END in items:
            here = items.count(END)
            found -= here
            marks -= here
    for _ in range(-marks):  # those of other consumers, in the same batch
        ends.put(END)
    return found
