"""Items from so many producers to so many consumers, each a process: the throughput."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier

from ..context import CONTEXT
from ..peers.base import Ends, Peer, SharedQueue
from ..processes import LIMIT, CaseFailed, Job, Member, perform
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
    #: Seconds for which a consumer is at work on an item: it sleeps.
    work: float = 0.0

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
            answers = perform(self._jobs(peer, queue, each), site.begin_process)
        begins = answers[: self.producers]
        ends = answers[self.producers : self.producers + self.consumers]
        arrived = sum(number for number, _ in ends)
        if arrived != each * self.producers:
            raise CaseFailed(f"{each * self.producers} items were put, {arrived} were got")
        seconds = max(end for _, end in ends) - min(begins)
        return Measured(arrived / seconds, seconds)

    def _jobs(self, peer: Peer, queue: SharedQueue, each: int) -> list[Job]:
        # One END for each consumer, behind all items: when the last one is got, all items are.
        puts, gets = (queue, self.payload, each, peer.batch), (queue, peer.batch, self.work)
        consumers = [Job(consume, gets)] * self.consumers
        if self.producers == 1:
            return [Job(produce_and_end, (*puts, self.consumers)), *consumers]
        done = CONTEXT.Barrier(self.producers + 1)
        producers = [Job(produce, (*puts, done))] * self.producers
        return [*producers, *consumers, Job(end, (queue, self.consumers, done))]


def produce_and_end(
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


def produce(
    member: Member, queue: SharedQueue, payload: int, count: int, batch: int, done: Barrier
) -> float:
    """Put so many items, and say so when the queue has them; the time at which it began."""
    begin = produce_and_end(member, queue, payload, count, batch, 0)
    member.close()
    done.wait(LIMIT)
    return begin


def end(member: Member, queue: SharedQueue, marks: int, done: Barrier) -> None:
    """Put so many END when all producers are done."""
    ends = member.connect(queue)
    member.start()
    done.wait(LIMIT)
    for _ in range(marks):
        ends.put(END)


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


def consume(member: Member, queue: SharedQueue, batch: int, work: float = 0.0) -> tuple[int, float]:
    """Get until END comes; how many items, and the time at which it came."""
    ends = member.connect(queue)
    member.start()
    if work:
        found = work_on_each(ends, work)
    else:
        found = get_batches(ends, batch) if batch > 1 else get_singly(ends)
    return found, time.perf_counter()


def get_singly(ends: Ends) -> int:
    get, found = ends.get, 0
    while get() is not END:
        found += 1
    return found


def work_on_each(ends: Ends, seconds: float) -> int:
    found = 0
    while ends.get() is not END:
        time.sleep(seconds)
        found += 1
    return found


def get_batches(ends: Ends, batch: int) -> int:
    assert ends.get_many
    found = marks = 0
    while not marks:
        items = ends.get_many(batch)
        marks = items.count(END) if END in items else 0
        found += len(items) - marks
    for _ in range(marks - 1):  # marks of other consumers, in the same batch
        ends.put(END)
    return found
