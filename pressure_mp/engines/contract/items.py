"""Requests to queues of items, whatever their order of service. Items are bytes."""

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

#: The most items that one call takes or puts, and the most bytes of these together, or about that.
#: A single item may be larger.
MOST_ITEMS = 1000
MOST_BYTES = 1_000_000


class Added(NamedTuple):
    """The first ``number`` items are in the queue."""

    number: int


class NotComparable(NamedTuple):
    """The queue has an item with the sort key ``other``, which cannot be compared with the
    caller's."""

    other: bytes


class Put(NamedTuple):
    """Add items, in order: the first item, and as many of the others as there is space for and the
    engine can add together with it (specification: Put).

    ``sort_keys`` say where each item belongs, in a discipline that has sort keys. With ``overfill``
    a single item is added beyond the bound. ``has_content``: the only item is a manifest, whose
    content was stored; the reply can be LOST.

    ``waits``: a session that is not served gets a place in line, or keeps it, and is served when it
    is the first. A session without a place is served before them if that leaves space for each, or
    for a take an item. Without ``waits``, the session is served if that is possible at this moment,
    even before sessions that wait, and gives up its place.
    """

    items: Sequence[bytes]
    sort_keys: Sequence[bytes] = ()
    overfill: bool = False
    has_content: bool = False
    waits: bool = True


def put_one(item: bytes, sort_keys: Sequence[bytes], overfill: bool, waits: bool) -> Put:
    """Make a :class:`Put` of one item, as most puts are, in half the time of a named tuple's own
    constructor."""
    return tuple.__new__(Put, ((item,), sort_keys, overfill, False, waits))


PutReply = Added | NoSpace | InUse | NotComparable | Lost | Closed | Missing


class Hold(NamedTuple):
    """Keep taken items at the broker, in flight, for ``owner`` (a process, see
    :func:`pressure_mp.identity.processes.incarnation`) until they are acknowledged.

    ``call`` is a number that the owner never used before. After ``limit`` deliveries an item is set
    aside instead of being requeued; 0 is no limit. A ``reader`` takes no more than its fair share,
    and counts as a consumer until its lease ends.
    """

    owner: str
    call: int
    limit: int = 0
    reader: str = ""


class Take(NamedTuple):
    """Take the next items, up to ``limit`` and to the most that one call may take (specification:
    Get).

    Without ``hold`` they are taken for good. ``until_ended``: the end of every producer is the end
    of the queue, with ``hold`` only when no other process has an item in flight. ``waits``: as in
    :class:`Put`.
    """

    limit: int = 1
    hold: Hold | None = None
    until_ended: bool = False
    waits: bool = True


#: The request that most gets make.
TAKE_ONE = Take()


class Taken(NamedTuple):
    """The items that were taken, and with a hold the number of each."""

    items: list[bytes]
    numbers: Sequence[int] = ()


TakeReply = Taken | NoItem | InUse | Closed | Ended | Missing


class NextIsLarge(NamedTuple):
    """The next item's content is in chunks: it cannot be prefetched, and must be taken."""


class Prefetch(NamedTuple):
    """Take the oldest items before they are needed: up to ``limit``, to the most that one call may
    take, and to the reader's fair share; none whose content is in chunks. Waits for nothing. The
    items stay at the broker, in flight, until the reader says that they were handed out, or they
    are requeued as the items of its owner are.

    ``reader`` is the owner, ``#`` and a number; with ``alone`` it is a
    :func:`~pressure_mp.identity.client.reader`. ``call`` is larger than any that it used before,
    and ``handed`` is how many items it ever handed out. Of the items of earlier calls, the last
    ``kept`` are not yet handed out. They stay, whatever the reply, and the items of the reply come
    behind them; the reader has no others.

    With a ``limit`` of 0, and the number of its last call, the reader tells no more than
    ``handed``, and renews its lease; ``kept`` says nothing then, and the reply is Taken without
    items. LATE: the items that it keeps, or tells about, were taken away meanwhile, or EndPrefetch
    ended the call.

    ``alone``: reserve the items. They stay queued, but no other client takes, counts or removes
    them until the reader says how many it handed out, or its lease ends; what it handed out since
    its last call is taken now. Reserves at most half of the bound of a queue that has one, so that
    the other half can be filled meanwhile. SHARED: other clients take items too, or this engine
    reserves none. When there is no item, and with SHARED, the reader's reservation is over unless
    it keeps items. Since its last call the reader handed out ``out`` items of ``size`` bytes
    together: an engine may be faster with these numbers. 0 when the reader does not know them.
    """

    reader: str
    call: int
    handed: int
    kept: int
    limit: int
    until_ended: bool = False
    alone: bool = False
    out: int = 0
    size: int = 0


PrefetchReply = Taken | NextIsLarge | NoItem | InUse | Shared | Late | Closed | Ended | Missing


class EndPrefetch(NamedTuple):
    """Note that a reader handed out ``handed`` items in all, and hands out no more. The others go
    back to the front, in order; with ``alone`` any client may take them. If ``call``, its last one,
    has not been done yet, it does nothing when it comes.
    """

    reader: str
    call: int
    handed: int
    alone: bool = False


class HandedOut(NamedTuple):
    """``number`` items in all count as handed out. They are fewer than the reader handed out if the
    others were taken away from it before; 0 when the broker no longer knows the reader."""

    number: int


EndPrefetchReply = HandedOut


class Acknowledge(NamedTuple):
    """Acknowledge an item in flight: the item of this number, or without a number the owner's
    oldest.

    LATE: it was taken away from this owner. PASSED: another process acknowledged it before, as it
    had no item of its own in flight.
    """

    owner: str
    number: int | None


AcknowledgeReply = Done | Late | Passed | Excess | Missing


class SetAside(NamedTuple):
    """Set a taken item aside that cannot be used: it counts as done. ``owner`` and ``number`` name
    an item in flight. LATE: it was taken away from this owner."""

    item: bytes
    owner: str = ""
    number: int | None = None


SetAsideReply = Done | Late | Missing


class GetRejected(NamedTuple):
    """List the items that were set aside, oldest first, up to ``limit``."""

    limit: int


GetRejectedReply = list[bytes] | Missing


class RequeueRejected(NamedTuple):
    """Put an item again that was set aside, the oldest of equal items: behind the queued items, and
    beyond the bound if necessary. Not for a discipline that has sort keys.

    ABSENT: no equal item is set aside.
    """

    item: bytes


RequeueRejectedReply = Done | Absent | Closed | Missing


class DropRejected(NamedTuple):
    """Remove an item that was set aside, the oldest of equal items, and its content."""

    item: bytes


DropRejectedReply = Done | Absent | Missing


class Placed(NamedTuple):
    """A queued item, and its sort key as :class:`Put` takes it; empty where the item alone says
    where it belongs. The sort key of a fair queue has the weight 1: the weight that an item was put
    with is not kept."""

    item: bytes
    sort_key: bytes


class PeekItems(NamedTuple):
    """List the next items, and leave them queued: up to ``limit`` items behind the first ``start``,
    reserved items included."""

    start: int
    limit: int


PeekItemsReply = list[Placed] | Missing


class Purge(NamedTuple):
    """Drop the queued items, which count as got and done. The reply is how many these are.

    ``waits``: the session waits for a client of another implementation that is about to take one of
    them, and for reserved items.
    """

    waits: bool = True


PurgeReply = int | InUse | Missing


#: The owner, from then on, of items that were missing when their owner's items were requeued.
OWNER_OF_MISSING = "-"


class Requeue(NamedTuple):
    """Requeue the items that ``owner`` has in flight, at the front, in order, and beyond the bound
    if necessary. Items that were delivered too often are set aside.

    With ``seen`` only if the owner's lease still ends at that time (RENEWED: it does not). With
    ``call`` only the items of that call. With ``numbers`` only these items, which no get returned:
    they do not count as delivered. With OWNER_OF_MISSING no item is requeued: missing items count
    as done.

    ``handed`` is how many items a reader of the owner ever handed out, as far as the caller knows:
    if a reader told of more, the larger number counts. These items are not requeued. The owner's
    lease then lasts once more, for readers that ask which items count, and the next such request
    after that forgets them.
    """

    owner: str
    seen: int | None = None
    call: int | None = None
    numbers: Sequence[int] = ()
    handed: Sequence[tuple[str, int]] = ()


RequeueReply = Done | Renewed | Missing


class Renew(NamedTuple):
    """Renew the leases of a process: as a consumer with items in flight, and as a producer."""

    owner: str
    consumes: bool
    produces: bool


class Attendance(NamedTuple):
    """The processes with leases, and the end of each lease, in milliseconds of the broker's
    clock."""

    now: int
    consumers: dict[str, int]
    producers: dict[str, int]


RenewReply = Attendance | Missing


class Retire(NamedTuple):
    """Remove a process from the producers; with ``seen`` only if its lease still ends then."""

    owner: str
    seen: int | None = None


RetireReply = Done | Renewed | Missing


class TakeBack(NamedTuple):
    """Undo a :class:`Take` for good whose reply is not used: the items go back to the front, in
    order. ``call`` identifies the take for the engine. Undoing it twice does nothing more.

    ``if_open``: leave the items taken if the queue was shut down, and reply with them. Other takers
    may have been told that nothing is queued, and no client would get the items.

    Only a session's ``taken`` makes this request."""

    call: Any
    if_open: bool = False


TakeBackReply = Done | Taken | Missing
