"""Read the reply of the script ``inspect`` into an inspection."""

from __future__ import annotations

import re
from typing import Any

from ...identity.client import is_reader, parse_client
from ..contract.brokers import Damage
from ..contract.queues import End, Inspection, RoleHolder, WaitingClient
from .statuses import Reply

#: The entry of a client in line: role, since, seen, kept, client.
_ENTRY = re.compile(r"(producer|consumer) (\d{1,18}) (\d{1,18}) (\d{1,18}) (.*)", re.DOTALL)


def read(reply: Reply, limit: int) -> Inspection:
    """Read the inspection from a reply with at most ``limit`` clients in line."""
    now, bound, length, closed, space = (int(number or 0) for number in reply[1:6])
    producer, consumer, entries, damage = reply[6:]
    line = _line(entries, now)
    ends = [_holder(told, now) for told in (producer, consumer)]
    is_full = 0 < bound <= length
    if not (damage or space or is_full or closed) and reply[2] and _is_quiet(*ends):
        damage, space = Damage.NO_SIGN.value, 1  # a put of this package reads the bound then
    return Inspection(
        now=now,
        length=length,
        bound=bound,
        closed=bool(closed),
        has_space=space > 0 and not is_full,
        deleting=reply[2] == b"",
        producer=End(as_text(producer[0]), ends[0], line["producer"]),
        consumer=End(as_text(consumer[0]), ends[1], line["consumer"]),
        partial=len(entries) >= 2 * limit,
        damage=as_text(damage),
    )


def _is_quiet(producer: RoleHolder | None, consumer: RoleHolder | None) -> bool:
    """Tell whether no client can have the token for space: none is at work."""
    at_work = ("foreign", "lost", "reading")
    return producer is None and (consumer is None or consumer.state not in at_work)


def is_lost(last: str, place: str) -> bool:
    """Tell whether no client has a role's token: its last holder is a client of this package, which
    gives it back in the same script that took it; or no holder is known."""
    return place == "foreign" and (not last or parse_client(last) is not None)


def as_text(part: Any) -> str:
    return part.decode(errors="replace") if isinstance(part, bytes) else str(part)


def _line(entries: list[Any], now: int) -> dict[str, list[WaitingClient]]:
    """List the clients in line for each role, the first one first."""
    found: dict[str, list[tuple[int, WaitingClient]]] = {"producer": [], "consumer": []}
    for ticket, text in zip(entries[::2], entries[1::2], strict=True):
        entry = _ENTRY.fullmatch(as_text(text))
        if entry is None:
            continue  # not an entry of this package
        since, seen, kept = map(int, entry.group(2, 3, 4))
        if seen + kept < now:
            continue  # killed long ago, and no waiting client has checked the line since
        waiting = WaitingClient(entry[5], as_text(ticket), since // 1000, seen)
        found[entry[1]].append((since, waiting))
    return {
        role: [waiting for _, waiting in sorted(line, key=lambda one: one[0])]
        for role, line in found.items()
    }


def _holder(reply: list[Any], now: int) -> RoleHolder | None:
    last, place, ticket, client, since, until, lease = map(as_text, reply)
    if place == "free":
        return None
    if place == "granted":
        return RoleHolder("granted", "")
    if place == "foreign":
        return RoleHolder("lost" if is_lost(last, place) else "foreign", last)
    ends = _number(until, now)
    state = "reading" if is_reader(ticket) else "waiting"
    return RoleHolder(state, client, ticket, _number(since, now), ends, _number(lease, ends - now))


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else default
