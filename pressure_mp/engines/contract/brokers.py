"""Requests about a broker, beside any single queue: which queues it has, how its server is set."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from ... import states
from .hosts import QueueKey
from .items import Attendance, Renew

#: The ways of tasks that are put, and of those that leave their taker for good.
PUT_WAYS = ("X-R", "X-W")
PROCESSED_WAYS = ("T-X", "T-D", "T-Z")
#: Of those that go back, and are taken again.
RETURNED_WAYS = ("T-R", "T-W")


class QueueSummary(NamedTuple):
    """Counts of a queue when the broker listed it.

    ``discipline`` is its kind: fifo, lifo, priority, fair or tasks. ``length`` is how many items
    are queued, or how many tasks are ready. ``produced`` and ``consumed`` count since the queue was
    created: items that were put and got, or tasks that were put and processed. ``in_flight`` is how
    many were taken and are not yet acknowledged; ``rejected`` how many were set aside, or buried.
    ``putting`` and ``getting`` are how many clients are known to wait to put and to get. ``age`` is
    for how many seconds the next task has been in the queue; None when no task is ready, and for
    items, whose times brokers do not keep. ``tasks`` has for each state (its letter) how many tasks
    are in it, and is empty for queues of items; a change of state that is due is counted only when
    a client uses the queue. ``returned`` is how often a task, or an item in flight, went back to
    the queue from a worker or consumer.
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
    NO_SETTINGS = "no settings"
    """It has tasks, and has lost what says so, and with which settings it was created: clients are
    told that there is no such queue. Who opens it states its settings, and has its tasks."""
    NO_KIND = "no kind"
    """It has lost what says of which kind it is: who knows its name only is refused. Who opens it
    states its kind, and has its items."""
    INCOMPLETE = "incomplete"
    """It has tasks, and has lost other keys, which what is kept of each task tells again: to open
    it with ``mends`` puts that right."""
    NO_CONTENTS = "no contents"
    """The order of its items is there, and items are not: who gets one of these is refused."""

    NONE_IN_FLIGHT = "none in flight"
    """Items were taken, and are neither in flight nor acknowledged: they do not come back when who
    has them ends, and `join()` waits for them. :data:`.items.NOBODY` has them then."""

    NO_SIGN = "no sign"
    """It has space, and what says so is missing: who waits for that, as clients of other
    implementations do, waits until somebody puts it back. A put does, and so does Unlock."""


class FindDamaged(NamedTuple):
    """Some of the queues that are damaged, each with its damage. In brokers that cannot lose a part
    of a queue there is none, which is the default reply. ``after`` and ``limit`` are as of
    :class:`ListQueues`, and so may one be told twice."""

    after: str = ""
    limit: int = 1000


class DamagedPage(NamedTuple):
    """Their names and damages, perhaps none, and where the next page begins."""

    queues: list[tuple[str, Damage]]
    after: str


FindDamagedReply = DamagedPage


class Finding(NamedTuple):
    """A setting or event at a server that loses data, or may.

    ``subject`` is the setting, for example; ``value`` is its value now; ``problem`` says in a
    sentence what happens; ``advice`` says what to do. ``loses`` is True when confirmed items can be
    lost, and False for other information.
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


class Identify(NamedTuple):
    """What tells this broker's queues of one prefix from all others: the same for whoever uses
    them, by whatever URL, as long as the broker keeps what it has."""


IdentifyReply = str


class QueueRenewal(NamedTuple):
    """Renew this process's leases in one of several queues, for so many milliseconds."""

    name: str
    discipline: str
    lease: int
    renew: Renew


class RenewAll(NamedTuple):
    """Do what :class:`~.items.Renew` does in several queues at once, with fewer calls. The replies
    are in the order of the queues; None for a queue that needs a Renew of its own."""

    queues: Sequence[QueueRenewal]


RenewAllReply = list[Attendance | None]


class MayGet(NamedTuple):
    """Tell for each queue whether a get would return at once: the queue has an item, or has ended.
    The replies are in the order of the queues; None for a queue that needs a call of its own."""

    queues: Sequence[QueueKey]


MayGetReply = list[bool | None]


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
