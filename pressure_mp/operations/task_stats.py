"""The counts of a queue of tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..states import NAMES, QUEUED, SHIFT, TaskState, named

if TYPE_CHECKING:
    from ..engines.contract.task_administration import TaskCounts

#: How many tasks are in each state.
Counts = dict[TaskState, int]
#: How often each change of state occurred so far, by names such as ``R-T``.
Transitions = dict[str, int]


@dataclass(frozen=True)
class RateLimit:
    """A limit of a queue of tasks, or of its ``tube``, None for the whole queue.

    At most ``number`` tasks are delivered in any ``per`` seconds; with ``each_key``, of each key.
    ``used`` is how many were in the last ``per`` seconds. ``left`` is for how many seconds no task
    may be, 0 if one may be now. Both are 0 with ``each_key``.
    """

    number: int
    per: float
    tube: str | None
    used: int
    left: float
    each_key: bool = False

    def __str__(self) -> str:
        where = "" if self.tube is None else f" of tube {self.tube!r}"
        if self.each_key:
            return f"{self.number} in {self.per:g} s of each key{where}"
        wait = f", the next in {self.left:.1f} s" if self.left else ""
        return f"{self.number} in {self.per:g} s{where} ({self.used} used{wait})"


@dataclass(frozen=True)
class TubeStats:
    """Counts of the tasks of a tube, or of a whole queue, at one moment.

    ``counts`` has the number of tasks in every state. ``transitions`` has, for each change of state
    that ever occurred, such as ``R-T``, how often it did. In its names X means that the task is not
    in the queue, and S, in a tube, that it is in another tube.
    """

    counts: Counts
    transitions: Transitions

    @property
    def words(self) -> dict[str, int]:
        """Return the counts by words: ``ready``, ``waiting``, and so on."""
        return {state.word: number for state, number in self.counts.items()}

    def _counted(self, words: bool) -> dict[str, int]:
        """Return the counts by words, or else by letters."""
        return self.words if words else {str(state): n for state, n in self.counts.items()}

    @property
    def deliveries(self) -> int:
        """How often a task was taken."""
        return self.transitions.get("R-T", 0)


@dataclass(frozen=True)
class TaskStats(TubeStats):
    """A queue of tasks at one moment.

    ``tubes`` has every tube that ever had a task. Tasks without a tube count in total only. ``now``
    and ``created``, the queue's first moment, are seconds since the epoch, by the broker's clock.
    ``oldest_ready_age`` is for how many seconds the oldest ready task is in the queue, None when
    none is ready; of more than 100 different priorities the most urgent 100 are looked at.
    ``paused`` says whether the queue is paused, and ``paused_tubes`` which of its tubes are paused
    by themselves; ``limits`` are the rate limits that are set. ``maxsize`` is the bound, 0 for
    none; ``putting`` is how many clients are known to wait for space. ``rates`` has for each change
    of state how often it occurred in a second: since the last ``stats()`` of this handle, or, if
    there was none, since the queue was created.
    """

    tubes: dict[str, TubeStats]
    now: float
    created: float
    oldest_ready_age: float | None
    closed: bool
    paused: bool = False
    paused_tubes: tuple[str, ...] = ()
    limits: tuple[RateLimit, ...] = ()
    maxsize: int = 0
    putting: int = 0
    rates: dict[str, float] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether a put would have to wait for space."""
        return 0 < self.maxsize <= queued(self.counts)

    def as_dict(self, words: bool = False) -> dict[str, object]:
        """Return ``counts``, ``transition`` and ``tube``, nested as in the reference, with letters
        or with words for the states."""
        return {
            "counts": self._counted(words),
            "transition": _named(self.transitions, words),
            "tube": {
                name: {
                    "counts": tube._counted(words),
                    "transition": _named(tube.transitions, words),
                }
                for name, tube in self.tubes.items()
            },
        }

    def with_rates(self, rates: dict[str, float]) -> TaskStats:
        """Return the same stats with these rates."""
        return replace(self, rates=rates)

    def rates_since(self, earlier: TaskStats | None) -> dict[str, float]:
        """Return how often each change of state occurred in a second since ``earlier``, or since
        the beginning."""
        before = earlier.transitions if earlier else {}
        seconds = max(self.now - (earlier.now if earlier else self.created), 0.001)
        return {
            way: (number - before.get(way, 0)) / seconds for way, number in self.transitions.items()
        }


def count(transitions: Transitions) -> Counts:
    """Return how many tasks are in each state after all these changes."""
    counts = dict.fromkeys(NAMES, 0)
    for way, number in transitions.items():
        before, _, after = way.partition("-")
        if before in NAMES:
            counts[named(before)] -= number
        if after in NAMES:
            counts[named(after)] += number
    return counts


def queued(counts: Counts) -> int:
    """Return how many tasks a bound counts."""
    return sum(counts[state] for state in QUEUED)


def rate_limits(counts: TaskCounts) -> tuple[RateLimit, ...]:
    """Return the limits of a queue, its own first."""
    return tuple(
        RateLimit(
            number=limit.number,
            per=limit.per / 1000,
            tube=limit.tube or None,
            used=limit.used,
            left=max(limit.until - counts.now, 0) / 1000,
            each_key=limit.each_key,
        )
        for limit in sorted(counts.limits)
    )


def _named(transitions: Transitions, words: bool) -> Transitions:
    if not words:
        return transitions
    names = {**{str(state): state.word for state in TaskState}, SHIFT: "other tube"}
    return {
        "-".join(names[end] for end in way.split("-")): number
        for way, number in transitions.items()
    }
