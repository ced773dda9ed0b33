"""Requests of queues of items, in whatever order they serve them. Items are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .replies import (
    Absent,
    Closed,
    Done,
    Ended,
    Excess,
    InUse,
    Late,
    Lost,
    Missing,
    NoItem,
    NoSpace,
    Passed,
    Renewed,
    Shared,
)

#: One call takes so many items at most; and of several so many bytes at most, or about that.
MOST_ITEMS = 1000
MOST_BYTES = 1_000_000


class Added(NamedTuple):
    """The first so many items are in the queue."""

    number: int


class NotComparable(NamedTuple):
    """An item is queued with that sort key, with which Python cannot compare the caller's."""

    other: bytes


class Put(NamedTuple):
    """Add items, in order: the first one, and of the others as many as there is space for and the
    engine can add with it (specification: Put).

    ``sort_keys`` say where each belongs, in a discipline that wants to know. With ``overfill`` the
    bound does not count, for a single item. ``has_content``: the only item is a manifest, whose
    content was stored; the reply can be LOST.

    ``waits``: who is not served has a place in line from then on, or keeps it; it is served when it
    is the first. Without, it is served if that is possible at this moment, whoever else waits, and
    has no place any more.
    """

    items: Sequence[bytes]
    sort_keys: Sequence[bytes] = ()
    overfill: bool = False
    has_content: bool = False
    waits: bool = True


def put_one(item: bytes, sort_keys: Sequence[bytes], overfill: bool, waits: bool) -> Put:
    """:class:`Put` of one item, what most puts are, made in half the time of a named tuple's own
    constructor."""
    return tuple.__new__(Put, ((item,), sort_keys, overfill, False, waits))


PutReply = Added | NoSpace | InUse | NotComparable | Lost | Closed | Missing


class Hold(NamedTuple):
    """What is taken stays with the broker, in flight, for ``owner`` (a process, see
    :func:`pressure_mp.identity.processes.incarnation`) until it is acknowledged.

    ``call`` is a number that the owner never used before. After ``limit`` deliveries an item is set
    aside instead of being put back; 0 is no limit. A ``reader`` takes no more than its fair share,
    and what it prefetched and is not known to have handed out stays in flight.
    """

    owner: str
    call: int
    limit: int = 0
    reader: str = ""


class Take(NamedTuple):
    """Take the items whose turn it is, up to ``limit`` and to what one call may take
    (specification: Get).

    Without ``hold`` they are taken for good. ``until_ended``: the end of every producer is the end
    of the queue, with ``hold`` only when no other process has an item in flight. ``waits``: as of
    :class:`Put`.
    """

    limit: int = 1
    hold: Hold | None = None
    until_ended: bool = False
    waits: bool = True


#: What most takes are.
TAKE_ONE = Take()


class Taken(NamedTuple):
    """The items, and with a hold the number of each."""

    items: list[bytes]
    numbers: Sequence[int] = ()


TakeReply = Taken | NoItem | InUse | Closed | Ended | Missing


class NextIsLarge(NamedTuple):
    """The content of the next item is in chunks: it is not prefetched, but to be taken."""


class Prefetch(NamedTuple):
    """Take items ahead of their need, up to ``limit``, what one call may take, and the reader's
    fair share. They stay with the broker, in flight, until the reader says that they were handed
    out.

    ``reader`` is the owner, ``#`` and a number; with ``.2`` behind that it is another one of the
    same handle, and has its share together with the first. ``call`` is larger than any that the
    reader used before, and says that all of its last call was handed out.
    """

    reader: str
    call: int
    limit: int
    until_ended: bool = False
    waits: bool = True


PrefetchReply = Taken | NextIsLarge | NoItem | InUse | Closed | Ended | Missing


class HandOut(NamedTuple):
    """So many items of a reader's call were handed out. The others stay prefetched, or with
    ``ends`` go back to the front, in order. LATE: they were taken away meanwhile.

    ``unheard``: nobody heard the reply to that call, nor will. If it was not made yet, which is
    LATE too, it does nothing when it comes.
    """

    reader: str
    call: int
    number: int
    ends: bool = False
    unheard: bool = False


HandOutReply = Done | Late | Missing


class Reserve(NamedTuple):
    """Read the oldest items for a reader, which hands them out: up to ``limit``, and what one call
    may take; none whose content is in chunks. They stay queued, but nobody else takes any, counts
    them or removes them, until the reader says how many it handed out, or its lease ends.

    Of a queue with a bound no more than half of what that holds: the others make space meanwhile;
    unless ``whole``. SHARED: others take items too, or this engine reserves none.

    ``reader`` is a :func:`~pressure_mp.identity.client.reader`. ``call`` is larger than any that it
    used before, and ``handed`` is how many items it ever handed out: those that it reserved and
    handed out since its last call are taken now. Where there is no item, and with SHARED, the
    reader has nothing reserved any more.

    ``kept`` of those that it reserved it has not yet handed out. They stay reserved, whatever the
    reply, and the items of the reply come behind them. With a ``limit`` of 0 the same call renews
    the lease of what it reserved. LATE: others have ended its reservation.

    Since its last call it handed out ``out`` of them, which are ``size`` bytes: an engine that is
    told may be faster. 0 when the reader does not know.
    """

    reader: str
    call: int
    handed: int
    kept: int
    limit: int
    whole: bool = False
    out: int = 0
    size: int = 0


class Reserved(NamedTuple):
    """The items, oldest first."""

    items: list[bytes]


ReserveReply = Reserved | Shared | Late | Missing


class EndReservation(NamedTuple):
    """A reader handed out ``handed`` items in all, and hands out no more; unless others ended its
    reservation before. If ``call``, its last one, was not made yet, it does nothing when it comes.
    """

    reader: str
    call: int
    handed: int


class HandedOut(NamedTuple):
    """So many of all its items count as handed out: the others are for anybody."""

    number: int


EndReservationReply = HandedOut


class Acknowledge(NamedTuple):
    """An item in flight is dealt with: that of this number; without one the oldest, if any is.

    LATE: it was taken away from this owner. PASSED: another process said so before, having none of
    its own.
    """

    owner: str
    number: int | None


AcknowledgeReply = Done | Late | Passed | Excess | Missing


class SetAside(NamedTuple):
    """An item that was taken cannot be used: it is kept apart, and counts as done. With ``owner``
    and ``number`` one in flight, unless it was taken away from this owner (LATE)."""

    item: bytes
    owner: str = ""
    number: int | None = None


SetAsideReply = Done | Late | Missing


class GetRejected(NamedTuple):
    """The items that were set aside, oldest first, up to ``limit``."""

    limit: int


GetRejectedReply = list[bytes] | Missing


class RequeueRejected(NamedTuple):
    """An item that was set aside is put again: behind the others, over the bound if need be. Of
    equal ones the oldest. Not for a discipline that wants to know where it belongs.

    ABSENT: none like it is set aside.
    """

    item: bytes


RequeueRejectedReply = Done | Absent | Closed | Missing


class DropRejected(NamedTuple):
    """An item that was set aside is removed, and with it its content. Of equal ones the oldest."""

    item: bytes


DropRejectedReply = Done | Absent | Missing


class PeekItems(NamedTuple):
    """The items whose turn it is next, which stay: up to ``limit`` behind the first ``start``. What
    somebody reserved is among them."""

    start: int
    limit: int


PeekItemsReply = list[bytes] | Missing


class Placed(NamedTuple):
    """A queued item, and where it belongs as :class:`Put` wants to know it; empty where an item
    alone says that. Of a fair queue with the weight 1: which weight an item was put with is not
    kept."""

    item: bytes
    sort_key: bytes


class PeekPlaced(NamedTuple):
    """The same items as :class:`PeekItems` tells, with where they belong."""

    start: int
    limit: int


PeekPlacedReply = list[Placed] | Missing


class Purge(NamedTuple):
    """Drop what is queued, which counts as got and dealt with. The reply is how many items that is.

    ``waits``: the caller waits for one of another implementation who is about to take one of them,
    and for what is reserved.
    """

    waits: bool = True


PurgeReply = int | InUse | Missing


#: Who has, once their owner's were to be put back, the items that were no longer in flight then.
NOBODY = "-"


class Requeue(NamedTuple):
    """Put back to the front, in order, what ``owner`` has in flight; over the bound if need be.
    What was delivered too often is set aside.

    With ``seen`` only if the owner's lease still ends then (RENEWED: it does not). With ``call``
    only what it took in that call. With ``numbers`` only these items, which nobody was given: that
    was no delivery. With NOBODY as owner nothing is put back, and what it has counts as done.
    """

    owner: str
    seen: int | None = None
    call: int | None = None
    numbers: Sequence[int] = ()


RequeueReply = Done | Renewed | Missing


class Renew(NamedTuple):
    """Renew a process's lease as one with items in flight, and as a producer."""

    owner: str
    consumes: bool
    produces: bool


class Attendance(NamedTuple):
    """Who is there, by the broker's clock: the end of each one's lease, in milliseconds."""

    now: int
    consumers: dict[str, int]
    producers: dict[str, int]


RenewReply = Attendance | Missing


class Retire(NamedTuple):
    """A process is no longer a producer; with ``seen`` only if its lease still ends then."""

    owner: str
    seen: int | None = None


RetireReply = Done | Renewed | Missing


class TakeBack(NamedTuple):
    """Undo a :class:`Take` for good whose reply nobody uses: the items go back to the front, in
    order. ``call`` is what the engine knows it by. To undo one twice does nothing more.

    ``if_open``: not if the queue was shut down. Others may have left it since they were told that
    nothing is queued, and nobody would get what goes back: the reply is what was taken, and stays
    so.

    A session's ``taken`` is one; there are no others."""

    call: Any
    if_open: bool = False


TakeBackReply = Done | Taken | Missing
