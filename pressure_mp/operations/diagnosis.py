"""Diagnose what a queue's clients wait for, and which clients are in the way."""

from __future__ import annotations

from typing import NamedTuple

from ..engines.contract.queues import End, Inspection
from ..identity.client import is_gone, parse_client, process_of
from .diagnosis_in_flight import NOTHING, Unacknowledged
from .diagnosis_sides import Holder, Peer, Side, Waiter
from .diagnosis_summary import sum_up

#: How many of the waiting clients a text names.
_NAMED = 3


#: The states in which a client of this package has a role, with a lease.
_WITH_LEASE = ("waiting", "reading")


class Diagnosis(NamedTuple):
    """What a put and a get on a queue would wait for at one moment, and which clients are in the
    way.

    ``str()`` says it in words, with the summary in the first line. ``deleting`` is True when the
    queue no longer exists, but its deletion waits until a client of another implementation gives a
    role back. ``partial`` is True when so many clients wait that only some were examined.
    ``in_flight`` says which processes may have items that were taken and not yet acknowledged.
    ``damage`` is not empty when the server, or another program, removed keys of the queue.
    """

    queue: str
    length: int
    maxsize: int
    closed: bool
    deleting: bool
    put: Side
    get: Side
    partial: bool
    in_flight: Unacknowledged
    damage: str = ""

    def __str__(self) -> str:
        details = (
            (f"queue {self.queue!r}", self._filling()),
            (f"a put waits for {self.put.waits_for}", self._detail(self.put)),
            (f"a get waits for {self.get.waits_for}", self._detail(self.get)),
        )
        lines = [self.sentence, *(f"{head}: {text}" for head, text in details)]
        if self.in_flight.number:
            owners = [str(one) for one in self.in_flight.owners] or ["it is not known where"]
            lines.append(f"{self.in_flight}: {'; '.join(owners)}")
        return "\n".join(lines)

    @property
    def sentence(self) -> str:
        """What a put or a get waits for, and what to do, in one sentence."""
        return sum_up(*self[:7], self.in_flight, self.damage)

    def explain(self, operation: str) -> str:
        """Say in one line what a ``"put"`` or a ``"get"`` waits for."""
        return f"{self._filling()}; {self._detail(self.put if operation == 'put' else self.get)}"

    def _filling(self) -> str:
        items = "item" if self.length == 1 else "items"
        bound = f"of {self.maxsize} items" if self.maxsize else f"{items}, without a bound"
        state = ", and is shut down" if self.closed else ""
        return "is being deleted" if self.deleting else f"holds {self.length} {bound}{state}"

    def _detail(self, side: Side) -> str:
        parts = [_holder(side), self._line(side)]
        if side.waits_for != "nothing":
            parts.append(_partners(side))
        return "; ".join(filter(None, parts))

    def _line(self, side: Side) -> str:
        if not side.line:
            return ""
        named = ", ".join(f"{one.peer} for {one.waited:.1f} s" for one in side.line[:_NAMED])
        rest = len(side.line) - _NAMED
        least = "at least " if self.partial else ""
        return f"{least}{len(side.line)} in line: {named}{f' and {rest} more' if rest > 0 else ''}"


def _holder(side: Side) -> str:
    role, holder = side.role, side.holder
    if holder is None:
        return f"the {role} role is free"
    if holder.state == "granted":
        return f"the {role} role was granted to the first in line, which has not come for it yet"
    if holder.state == "lost":
        return (
            f"no client has the {role} role, but `:{role}_free` is missing: the server may have "
            f"removed keys; PressureQueue.unlock({role!r}) puts it back"
        )
    if holder.state == "foreign":
        last = f"the last {role} was {holder.peer}" if holder.peer else f"no {role} is known"
        return (
            f"the {role} role is with another implementation, or with a client that died; {last}; "
            f"PressureQueue.unlock({role!r}) takes it away"
        )
    aim = {"producer": "space", "consumer": "an item"}[role]
    doing = "read ahead" if holder.state == "reading" else f"waited for {aim}"
    return (
        f"the {role} role is with {holder.peer}, which has {doing} "
        f"for {holder.held:.1f} s (lease renewed {holder.age:.1f} s ago, {holder.left:.1f} s left)"
    )


def _partners(side: Side) -> str:
    partner = {"put": "consumer", "get": "producer"}[side.operation]
    if not side.partners:
        return f"no {partner} was ever seen"
    if side.no_live_partner:
        return f"no live {partner} exists: the last one known is {side.partners[0]}"
    return ""


def diagnose(queue: str, seen: Inspection, in_flight: Unacknowledged = NOTHING) -> Diagnosis:
    """Make the diagnosis of what an engine saw of a queue."""
    known = _Peers()
    put_holder = _holder_of(seen.producer, seen.now, known)
    get_holder = _holder_of(seen.consumer, seen.now, known)
    put_line = _line_of(seen.producer, seen.now, known)
    get_line = _line_of(seen.consumer, seen.now, known)
    if seen.closed:
        put_waits, get_waits = "nothing", "role" if get_holder and seen.length else "nothing"
    else:
        put_waits = "role" if put_holder else "nothing" if seen.has_space else "space"
        get_waits = "role" if get_holder else "nothing" if seen.length else "item"
    producers = _users(seen.producer, put_holder, put_line, known)
    consumers = _users(seen.consumer, get_holder, get_line, known)
    return Diagnosis(
        queue=queue,
        length=seen.length,
        maxsize=seen.bound,
        closed=seen.closed,
        deleting=seen.deleting,
        put=Side("put", "producer", put_waits, put_holder, put_line, consumers),
        get=Side("get", "consumer", get_waits, get_holder, get_line, producers),
        partial=seen.partial,
        in_flight=in_flight,
        damage=seen.damage,
    )


class _Peers:
    """The clients of one diagnosis; whether a process lives is asked once."""

    def __init__(self) -> None:
        self._gone: dict[str, bool | None] = {}

    def peer(self, client: str, ticket: str = "") -> Peer:
        process = process_of(ticket) if ticket else client
        if process not in self._gone:
            self._gone[process] = is_gone(ticket or client)
        gone = self._gone[process]
        named = parse_client(client)
        host, pid, thread = named if named else (None, None, None)
        return Peer(client, host, pid, thread, None if gone is None else not gone)


def _holder_of(end: End, now: int, known: _Peers) -> Holder | None:
    holder = end.holder
    if holder is None:
        return None
    peer = known.peer(holder.client, holder.ticket) if holder.client else None
    if holder.state not in _WITH_LEASE:
        return Holder(holder.state, peer)
    left = holder.until - now
    times = (now - holder.since, holder.lease - left, left)
    return Holder(holder.state, peer, *(time / 1000 for time in times))


def _line_of(end: End, now: int, known: _Peers) -> tuple[Waiter, ...]:
    return tuple(
        Waiter(
            known.peer(one.client, one.ticket),
            max(now - one.since, 0) / 1000,
            (now - one.seen) / 1000,
        )
        for one in end.line
    )


def _users(
    end: End, holder: Holder | None, line: tuple[Waiter, ...], known: _Peers
) -> tuple[Peer, ...]:
    """Return all clients that are known to put, or to get. Unknown clients may be at work as
    well."""
    users = [known.peer(end.last)] if end.last else []
    if holder and holder.state in _WITH_LEASE and holder.peer:
        users.append(holder.peer)
    if holder and holder.state == "foreign":
        users.append(Peer("unknown", None, None, None, None))
    users += [waiter.peer for waiter in line]
    return tuple(dict.fromkeys(users))
