"""Requests to every kind of queue, and to queues of items: to open, inspect and end a queue."""

from __future__ import annotations

from enum import Enum
from typing import Literal, NamedTuple

from .replies import Closed, Done, Excess, InUse, Missing, Unfinished

#: What the name of each anonymous queue begins with.
ANONYMOUS = "{anonymous-"


class How(Enum):
    """The way in which a handle opens its queue."""

    CREATE = "create"
    ATTACH = "attach"
    OPEN = "open"  # attach to it, or create it when it is not there


class Opened(NamedTuple):
    """The queue exists now, with that bound."""

    bound: int


class Existing(NamedTuple):
    """The queue was to be created, and exists already, with that bound."""

    bound: int


class Mismatch(NamedTuple):
    """The name is in use for another kind of queue: ``what`` (its discipline, or the format in
    which the engine keeps it) is ``found`` and not ``wanted``."""

    what: str
    found: str
    wanted: str


class Open(NamedTuple):
    """Create a queue, attach to one, or whichever applies (specification: Create).

    ``bound`` is the bound of a queue that is created. ``user`` is a process to note as a user of
    an anonymous queue, empty for a named queue.
    """

    how: How
    bound: int
    user: str = ""


OpenReply = Opened | Existing | Mismatch | Missing


class Exists(NamedTuple):
    """Ask whether the queue was created and not deleted (specification: Exists). A queue of another
    discipline under its name is another queue."""


ExistsReply = bool


class GetDiscipline(NamedTuple):
    """Get the discipline of the queue, which may be another one than that of the binding."""


GetDisciplineReply = str | Missing


class Enlist(NamedTuple):
    """Note a process as a user of this anonymous queue."""

    user: str


EnlistReply = Done | Missing


class GetUsers(NamedTuple):
    """List the processes that use this anonymous queue."""


GetUsersReply = list[str] | Missing


class Dismiss(NamedTuple):
    """Remove processes from the users of this anonymous queue; the last one removes the queue. The
    reply is how many users are left."""

    users: tuple[str, ...]


DismissReply = int | Missing


class GetLength(NamedTuple):
    """Count the queued items (specification: Length)."""


GetLengthReply = int | Missing


class IsClosed(NamedTuple):
    """Ask whether the queue was shut down (specification: Closed); with ``immediate`` whether it
    drops items that are requeued, since it was shut down with ``immediate``."""

    immediate: bool = False


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
    """Get all counts of the queue at one moment."""


GetStatsReply = Stats | Missing


class SetBound(NamedTuple):
    """Change the queue's bound, 0 for none. Items over it stay; puts wait until there is space."""

    bound: int


SetBoundReply = Done | Missing


class CountDone(NamedTuple):
    """Count an item as done that was taken for good."""


CountDoneReply = Done | Excess | Missing


class Join(NamedTuple):
    """Ask whether all items that were put are done."""


JoinReply = Done | Unfinished | Missing


class Close(NamedTuple):
    """Shut the queue down for everyone, for good (specification: Close).

    With ``once`` the reply for a queue that is shut down already is :data:`Outcome.CLOSED`. With
    ``immediate`` the queued items are dropped, and count as done. ``waits``: the session waits
    while the queue is in use.
    """

    once: bool = False
    immediate: bool = False
    waits: bool = True


CloseReply = Done | InUse | Closed | Missing


class Delete(NamedTuple):
    """Remove the queue (specification: Delete).

    After the reply :class:`InUse` to a request that ``waits``, the queue no longer exists for other
    clients. Without ``waits``, nothing is done unless all of it can be done.
    """

    waits: bool = True


DeleteReply = Done | InUse | Missing


class Unlock(NamedTuple):
    """Take a role from the client that has it. The reply is that client, empty when the role was
    free.

    Only engines have roles whose queues other implementations use too: a client of these can die
    with a role. The default reply is that the role is free, whether the queue exists or not.
    """

    role: Literal["producer", "consumer"]


UnlockReply = str | Missing


class RoleHolder(NamedTuple):
    """The client that has a role; times are in milliseconds of the broker's clock.

    ``state`` is ``"waiting"`` (it waits with the role for an item or for space), ``"reading"`` (it
    reserved items, see :class:`~.items.Prefetch`), ``"granted"`` (it is the next in line, and has
    not used the role yet), ``"foreign"`` (a client of another implementation works, or died at
    work; ``client`` is the last known client) or ``"lost"`` (no client has the role). An engine
    without roles has the first three states at most.
    """

    state: str
    client: str
    ticket: str = ""
    since: int = 0
    until: int = 0
    lease: int = 0


class WaitingClient(NamedTuple):
    """A client in line: since when it waits, and when its place was last renewed, in milliseconds
    of the broker's clock."""

    client: str
    ticket: str
    since: int
    seen: int


class End(NamedTuple):
    """One end of a queue: the last client that used it, the holder of its role, and the line."""

    last: str
    holder: RoleHolder | None
    line: list[WaitingClient]


class Inspection(NamedTuple):
    """A queue at the moment ``now``. ``has_space``: for one more item. ``deleting``: the queue
    exists no longer, but its deletion waits. ``partial``: more clients may be in line than are
    listed. ``damage`` is the value of a :class:`.brokers.Damage`, empty for none, as in an engine
    that cannot lose a part of a queue."""

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
    """Find the clients that put and get wait for. At most ``limit`` clients in line are listed for
    each."""

    limit: int


InspectReply = Inspection | Missing
