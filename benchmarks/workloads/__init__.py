"""The workloads that are measured, in sections, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..peers import PEERS
from .base import Workload, size
from .latency import HandOff, PingPong
from .operations import DeepQueue, Operations, Unpickling
from .programs import Checksums, Program
from .transfer import Transfer

#: Peers whose gets wait for the puts of other processes.
WAITING = (
    *("pressure", "pressure-default", "pressure-unsigned", "pressure-buffered", "pressure-500"),
    *("mp-queue", "manager", "redis-brpop"),
    *("redis-100", "redis-500", "kombu", "hotqueue", "huey", "rq", "yarqueue"),
    *("faster-fifo", "faster-fifo-100"),
)
ONE_BY_ONE = tuple(key for key in WAITING if PEERS[key].batch == 1)
UNBUFFERED = ("pressure", "redis-rpop", "redis-brpop", "manager", "kombu", "hotqueue")
OURS = ("pressure", "pressure-buffered")
FEW = ("pressure", "mp-queue", "redis-brpop")
#: What a program has that changes only its import, before and after.
IMPORTED = ("pressure-default", "mp-queue")

CROWDED = 64
#: How many workers take a millisecond for an item.
WORKERS = (1, 2, 4)
#: Bounds of queues with one producer and one consumer.
BOUNDS = (32, 100, 1000)

#: Said of operations that are done one by one: a virtual machine takes longer to wake another
#: processor than most of them last, and whether it has to is a matter of luck.
TOGETHER = "The server and all processes share one processor: the figures compare their work."


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    #: What one run of a case is tuned to last.
    seconds: float
    #: How many times a latency is taken in one run.
    times: int
    #: Sizes of payloads that pressure_mp is measured with; and the sizes for other peers too.
    sizes: tuple[int, ...]
    peers_sizes: tuple[int, ...]
    #: Numbers of consumers, and of producers.
    members: tuple[int, ...]
    #: Items in the deep queue.
    depth: int
    #: Files that the README's program reads, and items of the other programs.
    files: int
    items: int


FULL = Scale(
    seconds=0.25,
    times=300,
    sizes=tuple(64 << power for power in range(21)),
    peers_sizes=tuple(64 << power for power in (*range(0, 20, 3), 20)),
    members=(1, 4, 16, 64, 256),
    depth=10_000_000,
    files=3000,
    items=10_000,
)
QUICK = Scale(
    seconds=0.03,
    times=20,
    sizes=(64, 16 << 10, 1 << 20),
    peers_sizes=(64, 1 << 20),
    members=(1, 8),
    depth=1_000_000,
    files=100,
    items=200,
)


@dataclass(frozen=True)
class Section:
    title: str
    note: str
    workloads: tuple[Workload, ...]


def sections(scale: Scale) -> list[Section]:
    return [
        Section(
            "Throughput",
            "Items from producers to consumers, each a process; with a bound of 8, all on one "
            "processor.",
            (
                Transfer("transfer-1-1", "1→1, 100 B", WAITING, times_as_long=4),
                Transfer(
                    "transfer-4-4",
                    "4→4, 100 B",
                    WAITING,
                    producers=4,
                    consumers=4,
                    times_as_long=4,
                ),
                Transfer(
                    "transfer-4-1",
                    "4→1, 100 B",
                    ("pressure-default", "pressure-buffered", "mp-queue"),
                    producers=4,
                    times_as_long=2,
                ),
                Transfer("transfer-10KB", "1→1, 10 KB", WAITING, payload=10_000, times_as_long=2),
                Transfer(
                    "bounded-8",
                    "1→1, bound 8",
                    ("pressure", "pressure-default", "mp-queue", "manager", "yarqueue"),
                    maxsize=8,
                    on_one_processor=True,
                ),
                Transfer(
                    "bounded-8-apart",
                    "1→1, bound 8, on all processors",
                    (*IMPORTED, "manager"),
                    maxsize=8,
                ),
                Transfer(
                    "bounded-8-4-4",
                    "4→4, bound 8",
                    ("pressure", "pressure-default", "mp-queue"),
                    producers=4,
                    consumers=4,
                    maxsize=8,
                    times_as_long=4,
                ),
                *(
                    Transfer(
                        f"bounded-{bound}",
                        f"1→1, bound {bound}",
                        ("pressure", "pressure-default", "mp-queue"),
                        maxsize=bound,
                    )
                    for bound in BOUNDS
                ),
            ),
        ),
        Section(
            "Work",
            "Workers that sleep for 1 ms an item; and whole programs, from their start to their "
            "end: the README's, which computes the checksums of files of 1000 bytes; two spawned "
            "workers that end at a sentinel; four processes that log into a QueueListener; and two "
            "workers with a JoinableQueue of jobs each and one of results.",
            (
                *(
                    Transfer(
                        f"workers-{number}",
                        f"{number} workers",
                        IMPORTED,
                        consumers=number,
                        work=0.001,
                        times_as_long=2,
                    )
                    for number in WORKERS
                ),
                Checksums("program", "the README's program", IMPORTED, files=scale.files),
                Program("sentinels", "two workers, sentinels", IMPORTED, items=scale.items),
                Program("log_listener", "logging, 4 processes", IMPORTED, items=scale.items),
                Program("job_queues", "a queue of jobs each", IMPORTED, items=scale.items),
            ),
        ),
        Section(
            "One operation",
            f"One process puts items of 100 bytes, then gets them. {TOGETHER}",
            (
                *(
                    Operations(
                        timed,
                        timed,
                        (*UNBUFFERED, "huey", "rq", "yarqueue", "persist-queue"),
                        timed=timed,
                        on_one_processor=True,
                    )
                    for timed in ("put", "get")
                ),
                Operations(
                    "batches",
                    "batches, put and get",
                    ("pressure-500", "redis-500"),
                    on_one_processor=True,
                ),
            ),
        ),
        Section(
            "Hand-off",
            "From a put to the return of a get that waits, by the number of consumers that wait. "
            + TOGETHER,
            tuple(_hand_offs(scale)),
        ),
        Section(
            "Ping-pong",
            f"To another process and back, over two queues. {TOGETHER}",
            (
                PingPong(
                    "ping-pong", "there and back", ONE_BY_ONE, scale.times, on_one_processor=True
                ),
            ),
        ),
        Section(
            "Payload sizes",
            "One producer, one consumer.",
            tuple(_payloads(scale)),
        ),
        Section(
            "Consumers",
            "One producer, items of 100 bytes, by the number of consumers.",
            tuple(
                Transfer(
                    f"consumers-{number}",
                    str(number),
                    ("pressure", "pressure-buffered", "mp-queue", "redis-brpop"),
                    consumers=number,
                    rounds=crowded(number),
                )
                for number in scale.members
            ),
        ),
        Section(
            "Producers",
            "One consumer, items of 100 bytes, a bound of 8, by the number of producers.",
            tuple(
                Transfer(
                    f"producers-{number}",
                    str(number),
                    FEW[:2],
                    producers=number,
                    maxsize=8,
                    rounds=crowded(number),
                )
                for number in scale.members
            ),
        ),
        Section(
            "Items queued",
            f"One process puts and gets, by the number of items in the queue. {TOGETHER}",
            tuple(
                DeepQueue(
                    f"depth-{depth}",
                    f"{depth:,}",
                    ("pressure", "redis-rpop"),
                    depth=depth,
                    on_one_processor=True,
                )
                for depth in (1000, scale.depth)
            ),
        ),
        Section(
            "Handles",
            "What a handle costs before its first use.",
            (Unpickling("unpickle", "to unpickle one", ("pressure",)),),
        ),
    ]


def crowded(members: int) -> int:
    """In how many rounds a case of so many members is done: it takes long to start them."""
    return 100 if members < CROWDED else 2 if members < 4 * CROWDED else 1


def _hand_offs(scale: Scale) -> Iterator[Workload]:
    for waiters in sorted({1, 8, 64, *scale.members}):
        peers = ONE_BY_ONE if waiters == 1 else FEW
        if waiters == 8:
            peers = (*FEW, "pressure-default", "manager")
        yield HandOff(
            f"hand-off-{waiters}",
            str(waiters),
            peers,
            scale.times if waiters < CROWDED else scale.times // 5,
            waiters=waiters,
            on_one_processor=True,
            rounds=crowded(waiters),
        )


def _payloads(scale: Scale) -> Iterator[Workload]:
    others = ("mp-queue", "manager", "redis-brpop", "faster-fifo")
    for payload in scale.sizes:
        peers = (*OURS, *others) if payload in scale.peers_sizes else OURS
        yield Transfer(f"payload-{payload}", size(payload), peers, payload=payload)
