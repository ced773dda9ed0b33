"""Requests about a broker, beside any single queue: which queues it has, how its server is set."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ... import states

#: The ways of tasks that are put, and of those that leave their taker for good.
PUT_WAYS = ("X-R", "X-W")
PROCESSED_WAYS = ("T-X", "T-D", "T-Z")
#: Of those that go back, and are taken again.
RETURNED_WAYS = ("T-R", "T-W")


class QueueSummary(NamedTuple):
    """A queue as it was when the broker listed it.

    ``length`` counts what is queued, of a queue of tasks those that are ready. ``produced`` and
    ``consumed`` count items since the queue was created, of tasks those that were put and those
    that were processed. ``in_flight`` is what was taken and not yet acknowledged; ``rejected`` what
    was set aside, or buried. ``putting`` and ``getting`` are how many clients wait to put and to
    get, as far as they are known to. ``age`` is for how many seconds the task that is next has been
    there; None when none is ready, and of items: no broker
    keeps that, but see :class:`.ages.Ages`. ``tasks`` has how many tasks
    are in which state, by its letter, and is empty for other queues. What became due of tasks since
    anybody used their queue is not counted yet. ``returned`` is how often a task, or an item that
    was in flight, went back from who had taken it.
    """

    name: str
    discipline: str
    length: int
    maxsize: int
    closed: bool
    produced: int
    consumed: int
    in_flight: int
    rejected: int
    putting: int
    getting: int
    age: float | None
    tasks: dict[str, int]
    returned: int = 0


def of_tasks(
    name: str, closed: bool, ways: dict[str, int], getting: int, age: float | None
) -> QueueSummary:
    """The summary of a queue of tasks, of which so many went which way (``R-T``)."""
    tasks = dict.fromkeys(map(str, states.NAMES), 0)
    for way, number in ways.items():
        before, _, after = way.partition("-")
        for state, change in ((before, -number), (after, number)):
            if state in tasks:
                tasks[state] += change
    return QueueSummary(
        name=name,
        discipline="tasks",
        length=tasks[states.READY],
        maxsize=0,
        closed=closed,
        produced=sum(ways.get(way, 0) for way in PUT_WAYS),
        consumed=sum(ways.get(way, 0) for way in PROCESSED_WAYS),
        in_flight=tasks[states.TAKEN],
        rejected=tasks[states.BURIED],
        putting=0,
        getting=getting,
        age=age,
        tasks=tasks,
        returned=sum(ways.get(way, 0) for way in RETURNED_WAYS),
    )


class ListQueues(NamedTuple):
    """Some of the queues that exist, anonymous ones too, in no order.

    ``after`` is that of the page before, empty for the first. ``limit`` is about how many the
    broker looks at. One that is created or deleted meanwhile may be listed or not; one may be
    listed twice.
    """

    after: str = ""
    limit: int = 1000


class QueuePage(NamedTuple):
    """The queues, perhaps none; ``after`` leads to the next page, and is empty on the last."""

    queues: list[QueueSummary]
    after: str


ListQueuesReply = QueuePage


class Damage(Enum):
    """What can be wrong with the keys of a queue that a broker keeps in several."""

    NO_BOUND = "no bound"
    """It has items and has lost its bound, by which a queue exists: clients are told that there is
    none. Who opens one states a bound, and has its items."""
    OF_ANOTHER = "of another"
    """What this package keeps beside its items is not known to be this queue's: another
    implementation deleted a queue of that name and created this one, or something copied its keys
    without their times to live. The next call that reads what is kept removes it first."""


class FindDamaged(NamedTuple):
    """Some of the first-in, first-out queues that are damaged, each with its damage. Brokers that
    cannot lose a part of a queue have none. ``after`` and ``limit`` are as of :class:`ListQueues`,
    and so may one be told twice."""

    after: str = ""
    limit: int = 1000


class DamagedPage(NamedTuple):
    """Their names and damages, perhaps none, and where the next page begins."""

    queues: list[tuple[str, Damage]]
    after: str


FindDamagedReply = DamagedPage


class Finding(NamedTuple):
    """Something at a server that loses data, or may.

    ``subject`` is what it is about, such as a setting; ``value`` what it is now; ``problem`` what
    happens, in a sentence; ``advice`` what to do. ``loses``: acknowledged items can be lost;
    without, it is worth knowing.
    """

    subject: str
    value: str
    problem: str
    advice: str
    loses: bool = True


class ExamineServer(NamedTuple):
    """How the server is set, where that loses data. A setting that this user may not read is a
    finding as well."""


ExamineServerReply = list[Finding]


class Sample(NamedTuple):
    """What was noted of all queues: when, in milliseconds of the broker's clock, and what."""

    time: int
    data: bytes


class AppendSample(NamedTuple):
    """Keep ``data`` at a later time than all others, unless a sample was kept less than ``every``
    milliseconds ago: so several who note the same do not note it more often. The newest ``keep``
    stay, and all of them for ``ttl`` milliseconds after the last one. The reply is whether it was
    kept.

    There is one line of samples for a prefix.
    """

    data: bytes
    every: int
    keep: int
    ttl: int


AppendSampleReply = bool


class ReadSamples(NamedTuple):
    """The samples that are there of the time behind ``after``, oldest first."""

    after: int = 0


ReadSamplesReply = list[Sample]
