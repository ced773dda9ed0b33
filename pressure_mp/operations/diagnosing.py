"""Make the diagnosis of a queue of items from what an engine saw of it."""

from __future__ import annotations

from ..engines.contract.queues import End, Inspection
from ..identity.client import is_gone, parse_client, process_of
from .diagnosis import WITH_LEASE, Diagnosis
from .diagnosis_in_flight import NOTHING, Unacknowledged
from .diagnosis_sides import Holder, Peer, Side, Waiter


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
    if holder.state not in WITH_LEASE:
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
    if holder and holder.state in WITH_LEASE and holder.peer:
        users.append(holder.peer)
    if holder and holder.state == "foreign":
        users.append(Peer("unknown", None, None, None, None))
    users += [waiter.peer for waiter in line]
    return tuple(dict.fromkeys(users))
