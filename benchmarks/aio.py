"""The queues of asyncio, beside redis-py's asyncio client, the queues for threads, and themselves.

``python -m benchmarks.aio``, with the ``test`` extra installed. It starts its own server on
loopback. In each round every case takes its turn, in processes of its own; each figure is the
median of the rounds. But for what goes from one process to another, client and server share one
processor.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import redis.asyncio

from pressure_mp import aio

from . import machine
from .peers import PEERS
from .processes import Job, Member, perform
from .server import Site, running
from .workloads.transfer import Transfer

PAYLOAD = b"x" * 100
#: Coroutines that put, and as many that get.
CROWD = 100
#: Seconds after which the benchmark no longer waits for coroutines that wait.
PATIENCE = 10.0
END = None
REDIS_OPTIONS: dict[str, Any] = {
    "socket_timeout": None,
    "socket_connect_timeout": None,
    "max_connections": 3 * CROWD,
}

PLAIN = "redis.asyncio, lpush and rpop in turn"
OURS = "aio.Queue, put and get in turn"
PLAIN_CROWD = "redis.asyncio, 100 lpush, 100 brpop"
OUR_CROWD = "aio.Queue, 100 put, 100 get"
STDLIB = "1→1, multiprocessing.Queue"
TWIN = "1→1, pressure_mp.Queue()"
TRANSFER = "1→1, aio.Queue()"
FEW = "aio.Queue, few wait"
MANY = "aio.Queue, many wait"
#: Pairs of cases, and the share of the second one's rate that the first should reach.
GOALS = (
    (OURS, PLAIN, "≥ 0.7"),
    (OUR_CROWD, PLAIN_CROWD, ""),
    (TRANSFER, TWIN, "≥ 0.5"),
    (TRANSFER, STDLIB, ""),
    (MANY, FEW, "≥ 0.7"),
)

Get = Callable[[], Awaitable[object]]
Put = Callable[[bytes], Awaitable[object]]
#: Puts and gets so many items; how many in a second.
Trial = Callable[[Put, Get, int], Coroutine[Any, Any, float]]


async def in_turn(put: Put, get: Get, number: int) -> float:
    """One coroutine puts an item and gets it, again and again."""
    begin = time.perf_counter()
    for _ in range(number):
        await put(PAYLOAD)
        await get()
    return number / (time.perf_counter() - begin)


async def in_a_crowd(put: Put, get: Get, number: int) -> float:
    """Many put, and as many get, which wait where there is nothing."""

    async def putting() -> None:
        for _ in range(number // CROWD):
            await put(PAYLOAD)

    async def getting() -> None:
        for _ in range(number // CROWD):
            await get()

    begin = time.perf_counter()
    await asyncio.gather(*(make() for _ in range(CROWD) for make in (getting, putting)))
    return number / (time.perf_counter() - begin)


async def waiting(waiters: int, put: Put, get: Get, number: int) -> float:
    """So many wait, and wait again when they were served; one puts. Before it counts, as many items
    as there are waiters come; but either takes ``PATIENCE`` seconds at most."""
    served: asyncio.Queue[object] = asyncio.Queue()

    async def getting() -> None:
        while True:
            served.put_nowait(await get())

    async def serve(count: int) -> None:
        goal = served.qsize() + count
        for _ in range(count):
            await put(PAYLOAD)
        while served.qsize() < goal:
            await asyncio.sleep(0.001)

    tasks = [asyncio.ensure_future(getting()) for _ in range(waiters)]
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(serve(waiters), PATIENCE)
    before, begin = served.qsize(), time.perf_counter()
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(serve(number), PATIENCE)
    rate = (served.qsize() - before) / (time.perf_counter() - begin)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return rate


# The processes


def with_ours(member: Member, url: str, trial: Trial, number: int) -> float:
    async def main() -> float:
        async with aio.Queue[bytes](name="bench", url=url, buffering=0) as q:
            await in_turn(q.put, q.get, 1)  # connects
            return await trial(q.put, q.get, number)

    return asyncio.run(main())


def with_redis(member: Member, url: str, blocking: bool, trial: Trial, number: int) -> float:
    async def main() -> float:
        async with redis.asyncio.Redis.from_url(url, **REDIS_OPTIONS) as client:
            put = partial(client.lpush, "bench")
            get = partial(client.brpop, ["bench"]) if blocking else partial(client.rpop, "bench")
            await in_turn(put, get, 1)
            return await trial(put, get, number)

    return asyncio.run(main())


def produce(member: Member, q: aio.Queue[bytes | None], number: int) -> float:
    async def main() -> float:
        async with q:
            await q.qsize()
            begin = member.start()
            for _ in range(number):
                await q.put(PAYLOAD)
            await q.put(END)
        return begin

    return asyncio.run(main())


def consume(member: Member, q: aio.Queue[bytes | None]) -> float:
    async def main() -> float:
        async with q:
            await q.qsize()
            member.start()
            while await q.get() is not END:
                pass
        return time.perf_counter()

    return asyncio.run(main())


# The cases


@dataclass(frozen=True)
class Bench:
    site: Site

    def calls(self, function: Callable[..., float], *arguments: Any) -> float:
        """Items a second that one process puts and gets, on the server's processor."""
        with self.site.on_one_processor() as site:
            job = Job(function, (site.url, *arguments))
            rate: float = perform([job], site.begin_process)[0]
        self.site.clear()
        return rate

    def transfer(self, number: int) -> float:
        """Items a second from a process with asyncio to another."""
        opened = aio.Queue[Any](url=self.site.url)
        asyncio.run(opened.open())
        begin, end = perform([Job(produce, (opened, number)), Job(consume, (opened,))])
        asyncio.run(opened.close())
        return number / (end - begin)

    def peer(self, key: str, number: int) -> float:
        """The same without asyncio."""
        workload = Transfer("transfer-1-1", "1→1", ())
        return workload.run(PEERS[key], self.site, number).value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="little of everything, to try it out")
    options = parser.parse_args()
    few, many = (2, 20) if options.quick else (10, 1000)
    calls, waits, transfers = (100, 20, 1000) if options.quick else (5000, 500, 200_000)
    with running() as site:
        bench = Bench(site)
        served = {number: partial(waiting, number) for number in (few, many)}
        cases: dict[str, Callable[[], float]] = {
            PLAIN: lambda: bench.calls(with_redis, False, in_turn, calls),
            OURS: lambda: bench.calls(with_ours, in_turn, calls),
            PLAIN_CROWD: lambda: bench.calls(with_redis, True, in_a_crowd, calls),
            OUR_CROWD: lambda: bench.calls(with_ours, in_a_crowd, calls),
            STDLIB: lambda: bench.peer("mp-queue", transfers),
            TWIN: lambda: bench.peer("pressure-default", transfers),
            TRANSFER: lambda: bench.transfer(transfers),
            FEW: lambda: bench.calls(with_ours, served[few], waits),
            MANY: lambda: bench.calls(with_ours, served[many], waits),
        }
        print(f"Python {sys.version.split()[0]}, {site.server()}, load averages {machine.load()}")
        print(f"Few are {few}, many are {many:,}.\n")
        rates: dict[str, list[float]] = {title: [] for title in cases}
        for _ in range(1 if options.quick else options.rounds):
            for title, case in cases.items():
                rates[title].append(case())
        show({title: statistics.median(found) for title, found in rates.items()})


def show(rates: dict[str, float]) -> None:
    print("| | items/s |\n| --- | --- |")
    for title, rate in rates.items():
        print(f"| {title} | {rate:,.0f} |")
    print("\n| | beside | ratio | goal |\n| --- | --- | --- | --- |")
    for ours, theirs, goal in GOALS:
        print(f"| {ours} | {theirs} | {rates[ours] / rates[theirs]:.2f} | {goal} |")


if __name__ == "__main__":
    main()
