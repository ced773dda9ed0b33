"""The ratios to reach, and whether they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .results import Case, Results
from .workloads import WORKERS


@dataclass(frozen=True)
class Outcome:
    """One row: what was compared, and the ratio, or why there is none."""

    title: str
    goal: str
    ours: float | None
    theirs: float | None
    ratio: float | None
    reached: bool | None
    note: str = ""


@dataclass(frozen=True)
class Goal:
    """One figure divided by another. Exactly one of the limits is given."""

    title: str
    ours: Case
    theirs: Case
    at_least: float | None = None
    at_most: float | None = None

    def outcome(self, results: Results) -> Outcome:
        goal = f"≥ {self.at_least}×" if self.at_least is not None else f"≤ {self.at_most}×"
        ours, theirs = results.median(*self.ours), results.median(*self.theirs)
        if ours is None or theirs is None:
            lacking = self.ours if ours is None else self.theirs
            note = f"{lacking[1]}: {results.why_not(*lacking)}"
            return Outcome(self.title, goal, ours, theirs, None, None, note)
        ratio = ours / theirs
        reached = ratio >= self.at_least if self.at_least is not None else ratio <= self._most
        return Outcome(self.title, goal, ours, theirs, ratio, reached)

    @property
    def _most(self) -> float:
        assert self.at_most is not None
        return self.at_most


def _beside(title: str, workload: str, ours: str, theirs: str, **limit: float) -> Goal:
    return Goal(title, (workload, ours), (workload, theirs), **limit)


def goals(depth: int) -> list[Goal]:
    buffered, unbuffered, default = "pressure-buffered", "pressure", "pressure-default"
    unsigned, peers = "pressure-unsigned", (default, "manager")
    return [
        _beside("`Queue()`, 1→1, 100 B", "transfer-1-1", default, "mp-queue", at_least=2),
        _beside("`Queue()`, 4→1, 100 B", "transfer-4-1", default, "mp-queue", at_least=1.5),
        _beside("`Queue()`, 1→1, 10 KB", "transfer-10KB", default, "mp-queue", at_least=0.4),
        _beside("`Queue()`, to not signed", "transfer-1-1", default, unsigned, at_least=0.85),
        *(
            _beside("`Queue()`, bound 8, 1→1", "bounded-8-apart", default, peer, at_least=limit)
            for peer, limit in (("manager", 2), ("mp-queue", 0.4))
        ),
        *(
            _beside(
                f"`Queue()`, 1 ms an item, workers: {number}",
                f"workers-{number}",
                default,
                "mp-queue",
                at_least=0.97,
            )
            for number in WORKERS
        ),
        _beside("`Queue()`, the README's program", "program", default, "mp-queue", at_least=1),
        *(
            _beside(f"`Queue()`, hand-off, {number}", f"hand-off-{number}", *peers, at_most=1)
            for number in (1, 8)
        ),
        _beside("`Queue()`, ping-pong", "ping-pong", *peers, at_most=1),
        _beside("buffered, 1→1, 100 B", "transfer-1-1", buffered, "mp-queue", at_least=3),
        _beside("buffered, 4→4, 100 B", "transfer-4-4", buffered, "mp-queue", at_least=3),
        _beside("buffered, 1→1, 100 B", "transfer-1-1", buffered, "faster-fifo-100", at_least=1.5),
        _beside("buffered, 1→1, 10 KB", "transfer-10KB", buffered, "mp-queue", at_least=0.8),
        _beside("buffered, 1→1, 10 KB", "transfer-10KB", buffered, "redis-100", at_least=1),
        _beside("batches of 500, 100 B", "batches", "pressure-500", "redis-500", at_least=0.7),
        _beside("unbuffered put", "put", unbuffered, "redis-rpop", at_least=1.2),
        _beside("unbuffered get", "get", unbuffered, "redis-rpop", at_least=1.2),
        _beside("unbuffered, bound 8, 1→1", "bounded-8", unbuffered, "yarqueue", at_least=1.5),
        _beside("unbuffered, bound 8, 1→1", "bounded-8", unbuffered, "manager", at_least=1),
        _beside("hand-off, 1 waits", "hand-off-1", unbuffered, "redis-brpop", at_most=1),
        _beside("hand-off, 8 wait", "hand-off-8", unbuffered, "redis-brpop", at_most=1),
        Goal(
            "hand-off, 64 wait, to 1 waits",
            ("hand-off-64", unbuffered),
            ("hand-off-1", unbuffered),
            at_most=2,
        ),
        _beside("ping-pong", "ping-pong", unbuffered, "redis-brpop", at_most=1.2),
        Goal(
            f"put and get, {depth:,} queued, to 1,000",
            (f"depth-{depth}", unbuffered),
            ("depth-1000", unbuffered),
            at_least=0.95,  # the same, but for the noise of the measurement
        ),
    ]


def steps(results: Results, sizes: tuple[int, ...]) -> Iterator[Outcome]:
    """No payload may be more than twice slower per byte than the next smaller one.

    The next larger one is not asked: of twice the size, it is at most twice faster per byte.
    """
    for peer in ("pressure", "pressure-buffered"):
        rates = {
            payload: median * payload
            for payload in sizes
            if (median := results.median(f"payload-{payload}", peer)) is not None
        }
        title = f"{peer}, per byte, to the next smaller payload, worst"
        if len(rates) < 2:
            note = f"{peer}: {results.why_not(f'payload-{sizes[0]}', peer)}"
            yield Outcome(title, "≤ 2×", None, None, None, None, note)
            continue
        pairs = list(zip(rates, list(rates)[1:], strict=False))
        smaller, larger = max(pairs, key=lambda pair: rates[pair[0]] / rates[pair[1]])
        ratio = rates[smaller] / rates[larger]
        note = f"{larger:,} B to {smaller:,} B"
        yield Outcome(title, "≤ 2×", None, None, ratio, ratio <= 2, note)
