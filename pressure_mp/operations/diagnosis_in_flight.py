"""Items in flight, in a diagnosis: how many there are, and which processes may have them."""

from __future__ import annotations

from typing import NamedTuple

from ..effects import Operation
from ..engines.contract.items import Attendance, Renew, RenewReply
from ..engines.contract.queues import GetStats, GetStatsReply, Stats
from ..identity.processes import State, incarnation, is_lost, state
from .diagnosis_sides import Peer, peer_of
from .phrases import are


class Owner(NamedTuple):
    """A process that has items in flight, or had some a moment ago. ``stopped`` is True when it
    lives, but was stopped, as by SIGSTOP. ``left`` is in how many seconds its lease ends, None when
    it has no lease any more. ``lost`` is True when its items go back as soon as a get waits for an
    item: it has ended; or its lease has, and it is not seen to run."""

    peer: Peer
    stopped: bool
    left: float | None
    lost: bool

    def __str__(self) -> str:
        stopped = ", but stopped" if self.stopped else ""
        lease = "its lease has ended" if self.left is None else f"lease for {self.left:.1f} s more"
        return f"{self.peer}{stopped}, {lease}"


class Unacknowledged(NamedTuple):
    """``number`` items were taken and not yet acknowledged. ``owners`` are the processes that may
    have them, ended processes first. A single owner has all of them."""

    number: int
    owners: tuple[Owner, ...]

    def __str__(self) -> str:
        return f"{are(self.number, 'item')} in flight"


NOTHING = Unacknowledged(0, ())


def find_owners() -> Operation[Unacknowledged]:
    """Find the processes that have items in flight."""
    stats: GetStatsReply = yield GetStats()
    if not isinstance(stats, Stats) or not stats.in_flight:
        return NOTHING
    there: RenewReply = yield Renew(incarnation(), False, False)
    if not isinstance(there, Attendance):
        return NOTHING  # the queue was deleted meanwhile
    found = [
        _owner(owner, seen, until, there.now)
        for owner, until in there.consumers.items()
        # A process that is alive and has items renews its lease.
        if (seen := state(owner)) != "alive" or until >= there.now
    ]
    return Unacknowledged(stats.in_flight, tuple(sorted(found, key=_urgency)))


def _owner(owner: str, seen: State, until: int, now: int) -> Owner:
    left = (until - now) / 1000 if until >= now else None
    return Owner(peer_of(owner, seen), seen == "stopped", left, is_lost(seen, until, now))


def _urgency(one: Owner) -> tuple[bool, bool, bool]:
    return one.peer.alive is not False, not one.lost, not one.stopped


def sum_up_lost(in_flight: Unacknowledged, closed: bool) -> str:
    """Return the sentence of an empty queue whose missing items are with a process that will not go
    on by itself; else an empty text."""
    number, owners = in_flight
    first = owners[0] if owners else None
    if first is None or not (first.lost or first.stopped):
        return ""
    it, goes = ("it", "it goes") if number == 1 else ("them", "they go")
    owner = f"{first.peer.name} has {it}, and"
    if len(owners) > 1:
        owner, goes = f"{first.peer.name}, which may have some of them,", "these go"
    if first.lost:
        # A get from a queue that is shut down and empty does not wait.
        when = "a process waits in join()" if closed else "a consumer waits for an item: start one"
        fix = "" if first.peer.alive else ", or `pressure-mp doctor --fix`"
        advice = f"; {goes} back when {when}{fix}"
    else:
        advice = ": let it go on, or end it"
    queue = "The queue is shut down and empty" if closed else "The queue is empty"
    return f"{queue}, but {in_flight}: {owner} {_state(first)}{advice}."


def _state(one: Owner) -> str:
    if one.peer.alive is False:
        return "has ended"
    if not one.stopped:
        return "let its lease end"
    return "is stopped, and let its lease end" if one.lost else "is stopped"
