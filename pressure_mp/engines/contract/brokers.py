"""Requests to a broker, not to a single queue: its queues, and the settings of its server."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from ... import states
from .hosts import QueueKey
from .items import Attendance, Renew

#: The transitions of tasks that are put, and of tasks that leave their taker for good.
PUT_WAYS = ("X-R", "X-W")
PROCESSED_WAYS = ("T-X", "T-D", "T-Z")
#: The transitions of tasks that go back, and are taken again.
RETURNED_WAYS = ("T-R", "T-W")


class QueueSummary(NamedTuple):
    """Counts of a queue when the broker listed it.

    ``discipline`` is its kind: fifo, lifo, priority, fair or tasks. ``length`` is how many items
    are queued, or how many tasks are ready. ``produced`` and ``consumed`` count since the queue was
    created: items that were put and got, or tasks that were put and processed. ``in_flight`` is how
    many were taken and are not yet acknowledged; ``rejected`` how many were set aside, or buried.
    ``putting`` and ``getting`` are how many clients are known to wait to put and to get. ``age`` is
    for how many seconds the next task has been in the queue; None when no task is ready, and for
    items, whose times brokers do not keep; a task of a paused tube may not count. ``tasks`` has for
    each state (its letter) how many tasks are in it, and is empty for queues of items; a change of
    state that is due is counted only when a client uses the queue. ``returned`` is how often a
    task, or an item in flight, went back to the queue from a worker or consumer. ``paused`` says
    whether a queue of tasks is paused, and ``paused_tubes`` which of its tubes are paused by
    themselves. ``workers`` is how many workers it has whose leases last.
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
    paused: bool = False
    paused_tubes: tuple[str, ...] = ()
    workers: int = 0

    @property
    def is_full(self) -> bool:
        """Whether a put would have to wait for space."""
        return 0 < self.maxsize <= self.length + self.tasks.get(states.WAITING, 0)


def split_pauses(paused: Sequence[str]) -> tuple[bool, tuple[str, ...]]:
    """Return whether the queue is paused, and the tubes that are paused by themselves, sorted."""
    return "" in paused, tuple(sorted(filter(None, paused)))


def of_tasks(
    name: str,
    closed: bool,
    paused: Sequence[str],
    ways: dict[str, int],
    getting: int,
    age: float | None,
    workers: int,
    maxsize: int,
    putting: int,
) -> QueueSummary:
    """Summarize a queue of tasks from the number of its transitions of each kind (``R-T``), and the
    tubes that are paused, with "" for the whole queue."""
    is_paused, paused_tubes = split_pauses(paused)
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
        maxsize=maxsize,
        closed=closed,
        produced=sum(ways.get(way, 0) for way in PUT_WAYS),
        consumed=sum(ways.get(way, 0) for way in PROCESSED_WAYS),
        in_flight=tasks[states.TAKEN],
        rejected=tasks[states.BURIED],
        putting=putting,
        getting=getting,
        age=age,
        tasks=tasks,
        returned=sum(ways.get(way, 0) for way in RETURNED_WAYS),
        paused=is_paused,
        paused_tubes=paused_tubes,
        workers=workers,
    )


class ListQueues(NamedTuple):
    """List some of the queues that exist, anonymous queues too, in no order.

    ``after`` is that of the previous page, empty for the first. The broker reads about ``limit``
    queues. A queue that is created or deleted meanwhile may be listed or not; a queue may be listed
    twice.
    """

    after: str = ""
    limit: int = 1000


class QueuePage(NamedTuple):
    """The queues, perhaps none; ``after`` leads to the next page, and is empty on the last."""

    queues: list[QueueSummary]
    after: str


ListQueuesReply = QueuePage


class Damage(Enum):
    """The damages of a queue that a broker keeps in several keys."""

    NO_BOUND = "no bound"
    """The queue has items and has lost its bound, by which a queue exists: clients are told that
    the queue does not exist. Opening it with a bound gives it that bound, and keeps the items."""
    OF_ANOTHER = "of another"
    """The keys that this package keeps beside the items may belong to an earlier queue: another
    implementation deleted a queue of that name and created this one, or a program copied the keys
    without their times to live. The next call that reads these keys removes them first."""
    NO_SETTINGS = "no settings"
    """The queue has tasks, and has lost the key with its settings, by which it exists: clients are
    told that the queue does not exist. Opening it with settings gives it these, and keeps the
    tasks."""
    NO_KIND = "no kind"
    """The queue has lost the record of its kind: a client that knows only its name is refused. A
    client that opens it as its kind has its items."""
    INCOMPLETE = "incomplete"
    """The queue has tasks, and has lost other keys, which can be made from the records of the
    tasks: opening it with ``mends`` does that."""
    NO_CONTENTS = "no contents"
    """The order of the items is there, and items are missing: a get of one of these is refused."""

    NONE_IN_FLIGHT = "none in flight"
    """Items were taken, and are neither in flight nor acknowledged: they are not requeued when
    their taker ends, and `join()` waits for them. See :data:`.items.OWNER_OF_MISSING`."""

    NO_SIGN = "no sign"
    """The queue has space, and the token that says so is missing: clients that wait for the token,
    as clients of other implementations do, wait until it is put back. A put does that, and so does
    Unlock."""


class FindDamaged(NamedTuple):
    """List some of the damaged queues, each with its damage. The default reply is an empty list,
    for brokers that cannot lose a part of a queue. ``after`` and ``limit`` are as in
    :class:`ListQueues`; a queue may be listed twice."""

    after: str = ""
    limit: int = 1000


class DamagedPage(NamedTuple):
    """Names and damages of queues, perhaps none; ``after`` leads to the next page."""

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
    """Find the settings of the server that can lose data. A setting that this user may not read is
    a finding as well."""


ExamineServerReply = list[Finding]


class Identify(NamedTuple):
    """Get the id of this broker's queues of one prefix: the same for all clients, whatever their
    URL, as long as the broker keeps its data."""


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
    """A sample of all queues, and its time, in milliseconds of the broker's clock."""

    time: int
    data: bytes


class AppendSample(NamedTuple):
    """Keep ``data`` as the newest sample, unless a sample was kept less than ``every`` milliseconds
    ago: so several processes that sample the same queues keep no more samples than one. The newest
    ``keep`` samples stay, and all of them for ``ttl`` milliseconds after the last one. The reply is
    whether the sample was kept.

    Each prefix has one sequence of samples.
    """

    data: bytes
    every: int
    keep: int
    ttl: int


AppendSampleReply = bool


class ReadSamples(NamedTuple):
    """List the samples with a time after ``after``, oldest first."""

    after: int = 0


ReadSamplesReply = list[Sample]
