"""A process that makes, uses and drops queues of every kind, and tells what it keeps of them.

    python soak.py URL SECONDS

It writes one line of JSON for each of its samples.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import itertools
import json
import os
import pickle
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pressure_mp
from pressure_mp import aio
from pressure_mp.engines import registry

#: Seconds between two samples, at least; and how many samples there are at least, on a machine that
#: has much else to do.
PAUSE, FEWEST = 0.5, 9


class Soak:
    """Rounds of uses, and samples between them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.at = {"url": url}
        self.numbers = itertools.count()
        self.made = 0
        self.executor: pressure_mp.Executor | None = None
        self.uses: list[Callable[[], None]] = [
            *(self.anonymous, self.dropped, self.named, self.bounded, self.joinable),
            *(self.other_orders, self.pickled, self.ahead, self.tasks, self.inbox),
            *(self.protocol, self.in_loops),
        ]
        self.is_shared = registry.parse(url).capabilities.persistent
        if self.is_shared:  # with other processes, such as the executor's workers
            self.executor = pressure_mp.Executor(max_workers=1, url=url)
            self.uses.append(self.futures)

    def name(self) -> str:
        self.made += 1
        return f"soak-{os.getpid()}-{next(self.numbers)}"

    def exchange(self, q: Any) -> None:
        self.made += 1
        q.put(1)
        assert q.get() == 1

    def anonymous(self) -> None:
        for kind in (pressure_mp.Queue, pressure_mp.SimpleQueue):
            q = kind(**self.at)
            self.exchange(q)
            q.close()

    def dropped(self) -> None:
        """Left to the garbage collector."""
        self.exchange(pressure_mp.Queue(**self.at))

    def named(self) -> None:
        q = pressure_mp.Queue(name=self.name(), **self.at)
        self.exchange(q)
        q.qsize()
        q.delete()

    def bounded(self) -> None:
        with pressure_mp.Queue(8, **self.at) as q:
            q.put_many(range(8))
            assert q.get_many(8) == [*range(8)]
            self.exchange(q)

    def joinable(self) -> None:
        for name in (None, self.name()):
            q = pressure_mp.JoinableQueue(name=name, **self.at)
            self.exchange(q)
            q.task_done()
            q.join()
            q.close() if name is None else q.delete()

    def other_orders(self) -> None:
        for kind in (pressure_mp.LifoQueue, pressure_mp.PriorityQueue):
            with kind(**self.at) as q:
                self.exchange(q)
        with pressure_mp.FairQueue(key=str, **self.at) as fair:
            self.exchange(fair)

    def pickled(self) -> None:
        if not self.is_shared:
            return
        q = pressure_mp.Queue(name=self.name(), **self.at)
        q.put(1)
        assert pickle.loads(pickle.dumps(q)).get() == 1
        q.delete()

    def ahead(self) -> None:
        q = pressure_mp.Queue(name=self.name(), prefetch=10, buffering=10, **self.at)
        for number in range(5):
            q.put(number)
        assert [q.get() for _ in range(5)] == [*range(5)]
        q.delete()

    def tasks(self) -> None:
        for name in (None, self.name()):
            tasks = pressure_mp.TaskQueue(name=name, **self.at)
            id = tasks.put(1, result_ttl=60)
            tasks.take().ack(result=2)
            assert tasks.result(id) == 2
            tasks.close() if name is None else tasks.delete()

    def inbox(self) -> None:
        tasks = pressure_mp.TaskQueue(name=self.name(), **self.at)
        with tasks.inbox() as inbox:
            tasks.put(1, inbox=inbox)
            tasks.take().ack()
            assert inbox.take(timeout=60)
        tasks.delete()

    def protocol(self) -> None:
        q = pressure_mp.PressureQueue(self.name(), **self.at)
        q.create(3)
        q.put(b"1")
        assert q.get() == b"1"
        q.delete()

    def futures(self) -> None:
        assert self.executor is not None
        self.made += 1
        assert self.executor.submit(abs, -1).result() == 1

    def in_loops(self) -> None:
        async def use() -> None:
            for kind in (aio.Queue, aio.JoinableQueue):
                async with kind(name=self.name(), **self.at) as q:
                    await q.put(1)
                    assert await q.get() == 1
                    await q.delete()
            async with aio.Queue(**self.at) as q:
                self.made += 1
                await q.put(1)
                assert await q.get() == 1

        asyncio.run(use())

    def sample(self) -> dict[str, int]:
        """Resident memory is without what free() keeps, and without tracemalloc's own tables."""
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        return {
            "made": self.made,
            "memory": tracemalloc.get_traced_memory()[0],
            "rss": pages * os.sysconf("SC_PAGE_SIZE") - tracemalloc.get_tracemalloc_memory(),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
        }

    def run(self, seconds: float) -> Iterator[dict[str, int]]:
        end = time.monotonic() + seconds
        samples = 0
        while time.monotonic() < end or samples < FEWEST:
            samples += 1
            pause = time.monotonic() + PAUSE
            while time.monotonic() < pause:
                for use in self.uses:
                    use()
            yield self.sample()
        if self.executor is not None:
            self.executor.shutdown()


if __name__ == "__main__":
    tracemalloc.start()
    for sample in Soak(sys.argv[1]).run(float(sys.argv[2])):
        print(json.dumps(sample), flush=True)
