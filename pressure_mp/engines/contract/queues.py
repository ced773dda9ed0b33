"""Requests of every kind of queue, and of queues of items: to open one, look at it, end it."""

from __future__ import annotations

from enum import Enum
from typing import Literal, NamedTuple

from .replies import Closed, Done, Excess, InUse, Missing, Unfinished

#: What the name of each anonymous queue begins with.
ANONYMOUS = "{anonymous-"


class How(Enum):
    """How a handle comes to its queue."""

    CREATE = "create"
    ATTACH = "attach"
    OPEN = "open"  # attach to it, or create it when it is not there


class Opened(NamedTuple):
    """There is the queue, with that bound."""

    bound: int


class Existing(NamedTuple):
    """There is one already, with that bound; it was to be created."""

    bound: int


class Mismatch(NamedTuple):
    """There is one of another kind: ``what`` (its discipline, or the format in which the engine
    keeps it) is ``found`` and not ``wanted``."""

    what: str
    found: str
    wanted: str


class Open(NamedTuple):
    """Create a queue, attach to one, or whichever applies (specification: Create).

    ``bound`` is what one that is created has. ``user`` is the process to be noted as one that uses
    an anonymous queue, empty for a named one.
    """

    how: How
    bound: int
    user: str = ""


OpenReply = Opened | Existing | Mismatch | Missing


class Exists(NamedTuple):
    """Whether the queue was created and not deleted (specification: Exists)."""


ExistsReply = bool


class GetDiscipline(NamedTuple):
    """Which discipline the queue has."""


GetDisciplineReply = str | Missing


class Enlist(NamedTuple):
    """Note a process as one that uses this anonymous queue."""

    user: str


EnlistReply = Done | Missing


class GetUsers(NamedTuple):
    """The processes that use this anonymous queue."""


GetUsersReply = list[str] | Missing


class Dismiss(NamedTuple):
    """Processes no longer use this anonymous queue, which goes with the last one. The reply is how
    many are left."""

    users: tuple[str, ...]


DismissReply = int | Missing


class GetLength(NamedTuple):
    """How many items are queued (specification: Length)."""


GetLengthReply = int | Missing


class IsClosed(NamedTuple):
    """Whether the queue was shut down (specification: Closed)."""


IsClosedReply = bool | Missing


class Stats(NamedTuple):
    """Counts of a queue at one moment.

    ``length`` is how many items are queued; ``maxsize`` is the bound, 0 for none. ``produced_…``
    and ``consumed_…`` count the items, and their bytes, that were put and got since the queue was
    created. ``producer`` and ``consumer`` are the ids of the clients that put and got last, or wait
    to do so. ``unfinished`` is how many items were put whose work is not done (see ``task_done``),
    ``rejected`` how many were set aside. ``in_flight`` is how many items were got from a
    JoinableQueue and are not yet acknowledged, or were fetched ahead and are not known to be
    returned by a get; they count as consumed, and as unfinished.
    """

    length: int
    maxsize: int
    closed: bool
    produced_messages: int
    produced_bytes: int
    consumed_messages: int
    consumed_bytes: int
    producer: str | None
    consumer: str | None
    unfinished: int
    rejected: int
    in_flight: int


class GetStats(NamedTuple):
    """Everything that can be counted, at one moment."""


GetStatsReply = Stats | Missing


class SetBound(NamedTuple):
    """Change the queue's bound, 0 for none. Items over it stay; puts wait until there is space."""

    bound: int


SetBoundReply = Done | Missing


class CountDone(NamedTuple):
    """One item that was got for good is dealt with."""


CountDoneReply = Done | Excess | Missing


class Join(NamedTuple):
    """Whether every item that was put is dealt with."""


JoinReply = Done | Unfinished | Missing


class Close(NamedTuple):
    """Shut the queue down for everyone, for good (specification: Close).

    With ``once`` one that is shut down already is :data:`Outcome.CLOSED`. With ``immediate`` what
    is queued is dropped, and counts as done. ``waits``: the caller waits while it is in use.
    """

    once: bool = False
    immediate: bool = False
    waits: bool = True


CloseReply = Done | InUse | Closed | Missing


class Delete(NamedTuple):
    """Remove the queue (specification: Delete).

    After :class:`InUse` to one that ``waits`` it no longer exists for others; without, nothing is
    done unless all of it can be done.
    """

    waits: bool = True


DeleteReply = Done | InUse | Missing


class Unlock(NamedTuple):
    """Take a role from whoever has it. The reply is who had it, empty when it was free.

    Only engines have roles whose queues other implementations use too: these can die with one. The
    default reply is that it is free, whether there is such a queue or not.
    """

    role: Literal["producer", "consumer"]


UnlockReply = str | Missing


class Keeper(NamedTuple):
    """Who keeps a role, in milliseconds of the broker's clock.

    ``state`` is ``"waiting"`` (with the role for an item or for space), ``"reading"`` (it
    reserved items, see :class:`~.items.Reserve`), ``"granted"`` (the next in line, which did not
    come for it yet), ``"foreign"`` (another implementation is at work, or died at work; ``client``
    is the last that is known) or ``"lost"`` (nobody). An engine without roles knows the first three
    at most.
    """

    state: str
    client: str
    ticket: str = ""
    since: int = 0
    until: int = 0
    lease: int = 0


class WaitingClient(NamedTuple):
    """One who stands in line, in milliseconds of the broker's clock: since when, and when it was
    last seen to."""

    client: str
    ticket: str
    since: int
    seen: int


class End(NamedTuple):
    """One end of a queue: who used it last, who keeps its role, and who stands in line for it."""

    last: str
    keeper: Keeper | None
    line: list[WaitingClient]


class Inspection(NamedTuple):
    """A queue at one moment, which is ``now``. ``has_space``: for an item more. ``deleting``: it
    exists no longer, but its deletion waits. ``partial``: more may stand in line than are told.
    ``damage`` is the value of a :class:`.brokers.Damage`, empty for none, as in an engine that
    cannot lose a part of a queue."""

    now: int
    length: int
    bound: int
    closed: bool
    has_space: bool
    deleting: bool
    producer: End
    consumer: End
    partial: bool
    damage: str = ""


class Inspect(NamedTuple):
    """Who is in the way of a put and of a get. Of those who stand in line for one of them at most
    ``limit`` are told."""

    limit: int


InspectReply = Inspection | Missing
