"""The time of one item: to a consumer that waits, and there and back."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Semaphore

from ..context import CONTEXT
from ..peers.base import Peer, SharedQueue
from ..processes import LIMIT, CaseFailed, Job, Member, perform
from ..server import Site
from .base import END, Measured, Workload, queues

#: Seconds that consumers get to come back where the benchmark cannot see whether they wait.
PAUSE = 0.002


@dataclass(frozen=True)
class Latency(Workload):
    count: int = 300

    @property
    def unit(self) -> str:
        return "µs"

    def counts(self, peer: Peer) -> tuple[int, int]:
        return self.count, self.count

    def _measured(self, times: list[float]) -> Measured:
        if len(times) != self.count:
            raise CaseFailed(f"{self.count} items were put, {len(times)} were got")
        in_us = tuple(each * 1e6 for each in times)
        return Measured(statistics.median(in_us), sum(times), in_us)


@dataclass(frozen=True)
class HandOff(Latency):
    """From a put to the return of a get that waits, with so many that wait."""

    waiters: int = 1

    def run(self, peer: Peer, site: Site, count: int) -> Measured:
        received = CONTEXT.Semaphore(0)
        watched = site if peer.waits_at_server else None
        with queues(peer, site, 1) as (queue,):
            first = Job(hand_out, (queue, count, self.waiters, received, watched))
            answers = perform(
                [first] + [Job(receive, (queue, received))] * self.waiters, site.begin_process
            )
        return self._measured([each for times in answers[1:] for each in times])


def hand_out(
    member: Member,
    queue: SharedQueue,
    count: int,
    waiters: int,
    received: Semaphore,
    watched: Site | None,
) -> None:
    ends = member.connect(queue)
    member.start()
    for _ in range(count):
        _wait_until_all_wait(watched, waiters)
        ends.put(time.perf_counter())
        if not received.acquire(timeout=LIMIT):
            raise CaseFailed("an item was put, and no consumer got it")
    for _ in range(waiters):
        ends.put(END)


def _wait_until_all_wait(watched: Site | None, waiters: int) -> None:
    if watched is None:
        time.sleep(PAUSE)
        return
    deadline = time.monotonic() + LIMIT
    with watched.client() as client:
        while client.info("clients")["blocked_clients"] < waiters:
            if time.monotonic() > deadline:
                raise CaseFailed(f"not all of {waiters} consumers wait")


def receive(member: Member, queue: SharedQueue, received: Semaphore) -> list[float]:
    ends = member.connect(queue)
    times = []
    member.start()
    while (sent := ends.get()) is not END:
        times.append(time.perf_counter() - sent)
        received.release()
    return times


@dataclass(frozen=True)
class PingPong(Latency):
    """One item to another process and back, over two queues."""

    def run(self, peer: Peer, site: Site, count: int) -> Measured:
        with queues(peer, site, 2) as (there, back):
            times, _ = perform(
                [Job(ping, (there, back, count)), Job(pong, (there, back))], site.begin_process
            )
        return self._measured(times)


def ping(member: Member, there: SharedQueue, back: SharedQueue, count: int) -> list[float]:
    outbox, inbox = member.connect(there), member.connect(back)
    times = []
    member.start()
    for number in range(count):
        begin = time.perf_counter()
        outbox.put(number)
        inbox.get()
        times.append(time.perf_counter() - begin)
    outbox.put(END)
    return times


def pong(member: Member, there: SharedQueue, back: SharedQueue) -> None:
    inbox, outbox = member.connect(there), member.connect(back)
    member.start()
    while (item := inbox.get()) is not END:
        outbox.put(item)
