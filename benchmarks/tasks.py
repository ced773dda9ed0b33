"""What a TaskQueue costs: its cycle beside redis-py, between processes, in batches, with a million
tasks, in the broker's memory; how punctual it is; and what many tasks that are due at once do.

``python -m benchmarks.tasks``, with the ``test`` extra installed; ``--only`` chooses. It starts its
own server on loopback, ``--server`` says which program. Compared cases take turns in a run.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import redis

from pressure_mp import Empty, Task, TaskQueue

from .costs import PAYLOAD, Calls, measure
from .processes import Job, Member, perform
from .server import Site, running

#: Tasks of a case between processes.
TASKS = 10_000
BATCH = 100
FEW, MANY = 1_000, 1_000_000
#: How many tasks are due at one moment, in a flood.
FLOOD = 100_000
#: Milliseconds that a call of the server may take.
SLOW = 2


def open_queue(url: str, name: str, **options: Any) -> TaskQueue:
    """Data is bytes, as that of a bare list is."""
    return TaskQueue(name, url=url, serializer="raw", **options)


def fill(queue: TaskQueue, number: int, **options: Any) -> None:
    for start in range(0, number, 1000):
        queue.put_many([PAYLOAD] * min(1000, number - start), **options)


# Calls of one process


def cycle(site: Site, rounds: int) -> None:
    """put + take + ack, beside LPUSH + RPOP + DEL."""
    queue, client = open_queue(site.url, "cycle"), redis.Redis(port=site.port)

    def ours() -> None:
        queue.put(PAYLOAD)
        queue.take().ack()

    def theirs() -> None:
        client.lpush("bare", PAYLOAD)
        client.rpop("bare")
        client.delete("taken")

    found = measure({"ours": ours, "theirs": theirs}, rounds)
    print(
        f"put + take + ack: {found['ours']:.0f} µs; LPUSH + RPOP + DEL with redis-py: "
        f"{found['theirs']:.0f} µs; ratio of the rates "
        f"{found['theirs'] / found['ours']:.2f}   (goal: at least 0.25)"
    )
    for verb, cost in verbs({"": queue}, rounds).items():
        print(f"  {verb} {cost['']:.1f} µs")


def verbs(queues: dict[str, TaskQueue], rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds of put, take and ack on each of the queues, which take turns: the lowest decile
    of single calls, because other programs on the machine only ever add to the time."""
    times: dict[str, dict[str, list[float]]] = {
        verb: {name: [] for name in queues} for verb in ("put", "take", "ack")
    }
    for _ in range(rounds):
        for name, queue in queues.items():
            tasks: list[Task] = []
            calls: Calls = {
                "put": lambda queue=queue: queue.put(PAYLOAD),
                "take": lambda queue=queue, tasks=tasks: tasks.append(queue.take()),
                "ack": lambda tasks=tasks: tasks.pop().ack(),
            }
            for verb, call in calls.items():
                for _ in range(50):
                    begin = time.perf_counter()
                    call()
                    times[verb][name].append((time.perf_counter() - begin) * 1e6)
    return {
        verb: {name: statistics.quantiles(one, n=10)[0] for name, one in found.items()}
        for verb, found in times.items()
    }


def processor(site: Site, rounds: int) -> None:
    """Processor time, which other programs on the machine hardly change: of the server and of the
    client."""
    queue, client = open_queue(site.url, "processor"), site.client()
    tasks: list[Task] = []
    many: list[list[Task]] = []
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "put": (lambda: queue.put(PAYLOAD), 1),
        "take": (lambda: tasks.append(queue.take()), 1),
        "ack": (lambda: tasks.pop().ack(), 1),
        "put_many": (lambda: queue.put_many([PAYLOAD] * BATCH), BATCH),
        "take_many": (lambda: many.append(queue.take_many(BATCH)), BATCH),
        "ack_many": (lambda: queue.ack_many(many.pop()), BATCH),
        "LPUSH": (lambda: client.lpush("bare", PAYLOAD), 1),
        "RPOP": (lambda: client.rpop("bare"), 1),
    }
    for verb, (call, size) in calls.items():
        number = 50 * rounds // (1 if size == 1 else 10)
        server, own = server_time(client), time.process_time()
        for _ in range(number):
            call()
        server, own = server_time(client) - server, time.process_time() - own
        print(
            f"processor time of a task in {verb}: server {server / number / size * 1e6:.1f} µs, "
            f"client {own / number / size * 1e6:.1f} µs"
        )
    client.close()


def server_time(client: redis.Redis) -> float:
    """Seconds of processor time of the server so far."""
    info = client.info("cpu")
    return float(info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"])


def sizes(site: Site, rounds: int) -> None:
    """The same operations on a queue of few tasks and on one of very many."""
    queues = {f"{number:,}": open_queue(site.url, f"size-{number}") for number in (FEW, MANY)}
    for number, queue in zip((FEW, MANY), queues.values(), strict=True):
        fill(queue, number)
    for verb, cost in verbs(queues, rounds).items():
        few, many = cost.values()
        told = ", ".join(f"{name} tasks {one:.1f} µs" for name, one in cost.items())
        print(f"{verb} with {told}; ratio {many / few:.2f}   (goal: at most 1.5)")
    for queue in queues.values():
        queue.delete()


def memory(site: Site, rounds: int) -> None:
    """What the broker needs for a task, beside its data."""
    number = 100_000
    states: dict[str, dict[str, Any]] = {
        "ready": {},
        "ready, with a ttl": {"ttl": 3600},
        "ready, in a tube": {"tube": "a"},
        "waiting": {"delay": 3600},
        "taken": {},
    }
    with site.client() as client:
        for state, options in states.items():
            queue = open_queue(site.url, f"memory-{state}")
            before = client.info("memory")["used_memory"]
            fill(queue, number, **options)
            if state == "taken":
                for _ in range(number // 1000):
                    queue.take_many(1000)
            used = client.info("memory")["used_memory"] - before
            each = used / number - len(PAYLOAD)
            print(f"a task that is {state}: {each:.0f} B beside its data   (goal: at most 400)")


# Several processes


def produce(member: Member, url: str, name: str, number: int, batch: int) -> float:
    queue = open_queue(url, name)
    started = member.start()
    if batch == 1:
        for _ in range(number):
            queue.put(PAYLOAD)
    else:
        for _ in range(number // batch):
            queue.put_many([PAYLOAD] * batch)
    return started


def consume(member: Member, url: str, name: str, number: int, batch: int) -> float:
    queue = open_queue(url, name)
    member.start()
    if batch == 1:
        for _ in range(number):
            queue.take().ack()
    else:
        while number:
            tasks = queue.take_many(min(batch, number))
            queue.ack_many(tasks)
            number -= len(tasks)
    return time.perf_counter()


def work(member: Member, url: str, name: str, number: int, batch: int) -> float:
    """Run a handler that does nothing on so many tasks."""
    queue, stop, left = open_queue(url, name), threading.Event(), iter(range(number - 1, -1, -1))
    member.start()

    def handle(task: Task) -> None:
        if not next(left):
            stop.set()

    queue.run(handle, stop=stop)
    return time.perf_counter()


#: A producer and a consumer, and the number of tasks in one call.
Roles = tuple[Callable[..., float], Callable[..., float], int]


def cycles(site: Site, pairs: int, roles: Roles, tasks: int) -> float:
    """Cycles in a second, with so many producers and as many consumers, each a process."""
    producer, consumer, batch = roles
    name = f"{consumer.__name__}-{pairs}-{batch}"
    arguments: tuple[Any, ...] = (site.port, name, tasks // pairs)
    if consumer is not consume_bare:
        open_queue(site.url, name)
        arguments = (site.url, name, tasks // pairs, batch)
    jobs = [Job(work, arguments) for work in (producer, consumer) for _ in range(pairs)]
    answers = perform(jobs)
    return tasks / (max(answers[pairs:]) - min(answers[:pairs]))


def processes(site: Site, rounds: int) -> None:
    """Producers and consumers in processes, beside redis-py's LPUSH, BRPOP and DEL in the same."""
    single, batched = (produce, consume, 1), (produce, consume, BATCH)
    cases: dict[str, tuple[int, Roles, str]] = {
        "1 to 1, take and ack": (1, single, ""),
        "1 to 1, run": (1, (produce, work, 1), "to beat 6,200"),
        "4 to 4, take and ack": (4, single, ""),
        "4 to 4, run": (4, (produce, work, 1), "to beat 9,600"),
        f"1 to 1, batches of {BATCH}": (1, batched, "to aim at 100,000"),
        f"2 to 2, batches of {BATCH}": (2, batched, "to aim at 100,000"),
    }
    rates: dict[str, list[float]] = {what: [] for what in cases}
    bare: dict[str, list[float]] = {what: [] for what in cases}
    for _ in range(max(rounds // 10, 1)):
        for what, (pairs, roles, _) in cases.items():
            rates[what].append(cycles(site, pairs, roles, TASKS * (20 if roles[2] > 1 else 1)))
            bare[what].append(cycles(site, pairs, (produce_bare, consume_bare, 1), TASKS))
    for what, (*_, goal) in cases.items():
        ours, theirs = statistics.median(rates[what]), statistics.median(bare[what])
        told = f"   ({goal})" if goal else ""
        print(
            f"{what}: {ours:,.0f} cycles/s, best {max(rates[what]):,.0f}{told}; "
            f"LPUSH + BRPOP + DEL {theirs:,.0f}, ratio {ours / theirs:.2f}"
        )


def produce_bare(member: Member, port: int, name: str, number: int) -> float:
    client = redis.Redis(port=port)
    client.ping()
    started = member.start()
    for _ in range(number):
        client.lpush(name, PAYLOAD)
    return started


def consume_bare(member: Member, port: int, name: str, number: int) -> float:
    client = redis.Redis(port=port, socket_timeout=None)
    client.ping()
    member.start()
    for _ in range(number):
        client.brpop(name)
        client.delete("taken")
    return time.perf_counter()


def batches(site: Site, rounds: int) -> None:
    """One process that does everything, in batches."""
    queue = open_queue(site.url, "batches")
    tasks: list[list[Task]] = []
    found = measure(
        {
            "put_many": lambda: queue.put_many([PAYLOAD] * BATCH),
            "take_many": lambda: tasks.append(queue.take_many(BATCH)),
            "ack_many": lambda: queue.ack_many(tasks.pop()),
        },
        rounds,
        10,
    )
    total = sum(found.values())
    parts = ", ".join(f"{name} {cost:.0f} µs" for name, cost in found.items())
    print(f"one process, batches of {BATCH}: {parts}: {BATCH / total * 1e6:,.0f} cycles/s")


# Time


def punctuality(site: Site, rounds: int) -> None:
    """From the moment at which a task is due to the return of the take that waits for it."""
    queue = open_queue(site.url, "delays")
    late: list[float] = []
    due: list[float] = []
    taken = threading.Semaphore(0)

    def take() -> None:
        for _ in range(rounds):
            task = queue.take()
            late.append(time.perf_counter() - due[-1])
            taken.release()
            task.ack()

    taker = threading.Thread(target=take)
    taker.start()
    chance = random.Random(0)
    for _ in range(rounds):
        delay = chance.uniform(0.02, 0.3)
        due.append(time.perf_counter() + delay)
        queue.put(PAYLOAD, delay=delay)
        taken.acquire()
    taker.join()
    queue.delete()
    late.sort()
    print(
        f"a delayed task is taken {statistics.median(late) * 1e3:.1f} ms after it is due, "
        f"at most {late[-1] * 1e3:.1f} ms   (goal: 50)"
    )


def flood(site: Site, rounds: int) -> None:
    """The longest PING and put of others while a worker takes very many tasks: such as are ready,
    and such as are all due at one moment; and the server's longest call."""
    queue, client = open_queue(site.url, "flood"), site.client()
    client.config_set("slowlog-log-slower-than", 1000 * SLOW)
    begin = time.monotonic()
    fill(queue, FLOOD)
    filling = time.monotonic() - begin
    for what in ("are ready", "become due at once"):
        due = time.monotonic()
        if what != "are ready":
            due += 1.5 * filling + 3
            for _ in range(FLOOD // 1000):
                queue.put_many([PAYLOAD] * 1000, delay=max(due - time.monotonic(), 0.0))
        begin, until = max(due - 0.5, time.monotonic() + 1), max(due, time.monotonic() + 1) + 8
        jobs = [
            Job(time_pings, (site.port, begin, until)),
            Job(time_puts, (site.url, "flood", begin, until)),
            Job(drain, (site.url, "flood", begin, until)),
        ]
        client.slowlog_reset()
        pings, puts, drained = perform(jobs)
        slow = [call["duration"] / 1000 for call in client.slowlog_get(1000)]
        print(
            f"while {FLOOD:,} tasks {what}: the longest PING {pings[0]:.1f} ms (99.9 % below "
            f"{pings[1]:.1f}), the longest put {puts[0]:.1f} ms (99.9 % below {puts[1]:.1f}); "
            f"{drained:,} tasks worked off in {until - begin:.0f} s   (goal: 10 ms)"
        )
        print(
            f"  calls of which the server took more than {SLOW} ms, or was kept from running: "
            f"{len(slow)}, the longest {max(slow, default=0):.1f} ms"
        )
        queue.truncate()
    queue.delete()
    client.close()


def longest(times: list[float]) -> tuple[float, float]:
    """The longest, and the 99.9th percentile, in milliseconds."""
    times.sort()
    return times[-1] * 1e3, times[len(times) * 999 // 1000] * 1e3


def time_pings(member: Member, port: int, begin: float, until: float) -> tuple[float, float]:
    client = redis.Redis(port=port)
    client.ping()
    member.start()
    return longest(list(timed(client.ping, begin, until)))


def time_puts(
    member: Member, url: str, name: str, begin: float, until: float
) -> tuple[float, float]:
    queue = open_queue(url, name)
    queue.put(PAYLOAD)
    member.start()
    return longest(list(timed(lambda: queue.put(PAYLOAD), begin, until)))


def timed(call: Callable[[], object], begin: float, until: float) -> Iterator[float]:
    """How long each call takes, of one a millisecond."""
    time.sleep(max(0.0, begin - time.monotonic()))
    while time.monotonic() < until:
        start = time.perf_counter()
        call()
        yield time.perf_counter() - start
        time.sleep(0.001)


def drain(member: Member, url: str, name: str, begin: float, until: float) -> int:
    """Take and acknowledge what comes, in batches."""
    queue, number = open_queue(url, name), 0
    member.start()
    time.sleep(max(0.0, begin - time.monotonic()))
    while time.monotonic() < until:
        try:
            tasks = queue.take_many(BATCH, timeout=max(0.0, until - time.monotonic()))
        except Empty:
            break
        queue.ack_many(tasks)
        number += len(tasks)
    return number


CASES: dict[str, Callable[[Site, int], None]] = {
    case.__name__: case
    for case in (cycle, processor, processes, batches, sizes, memory, punctuality, flood)
}


def main() -> None:
    parser = argparse.ArgumentParser(description="What a TaskQueue costs.")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--server", help="the server's program, such as redis-server")
    options = parser.parse_args()
    with running(options.server) as site:
        load = os.getloadavg()[0]
        print(f"Python {sys.version.split()[0]}, {site.server()}, load average {load:.1f}")
        for name in options.only:
            CASES[name](site, options.rounds)


if __name__ == "__main__":
    main()
