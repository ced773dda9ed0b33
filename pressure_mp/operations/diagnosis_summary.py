"""Sum up the diagnosis of a queue of items in one sentence, with what to do."""

from __future__ import annotations

from typing import NamedTuple

from ..engines.contract.brokers import Damage
from .diagnosis_in_flight import Unacknowledged, sum_up_lost
from .diagnosis_sides import Side

_DAMAGES = {
    Damage.NO_CONTENTS: (
        "Items of the queue are missing, which the server or another program removed: a get "
        "of one raises IncompleteQueueError; `pressure-mp doctor` says what to do."
    ),
    Damage.NONE_IN_FLIGHT: (
        "Items that were in flight are missing, which the server or another program removed: if "
        "the process that has them ends, they do not come back, and join() waits without end; "
        "`pressure-mp doctor` says what to do."
    ),
}


class _Found(NamedTuple):
    """The facts about a queue."""

    queue: str
    length: int
    maxsize: int
    closed: bool
    deleting: bool
    put: Side
    get: Side
    in_flight: Unacknowledged


def sum_up(
    queue: str,
    length: int,
    maxsize: int,
    closed: bool,
    deleting: bool,
    put: Side,
    get: Side,
    in_flight: Unacknowledged,
    damage: str,
) -> str:
    found = _Found(queue, length, maxsize, closed, deleting, put, get, in_flight)
    if found.deleting:
        return (
            "The queue is being deleted, and that waits for a client of another implementation "
            "that is at work, or died at work."
        )
    stuck = _stuck(found)
    if stuck:
        return stuck
    if damage == Damage.NO_SIGN.value:
        return (
            f"{_state(found)}, but the key that says that there is space is missing; the server or "
            "another program removed it, or a producer ended that had taken it. A producer of "
            "another implementation waits for it; the next put of this package puts it back, or "
            "`pressure-mp doctor --fix`."
        )
    if damage:
        return _DAMAGES[Damage(damage)]
    lost = "" if found.length else sum_up_lost(in_flight, closed)
    if lost:
        return lost
    if found.closed:
        left = f"{_items(found.length)} left to get" if found.length else "nothing left to get"
        return f"The queue is shut down, with {left}: no process can put any more."
    if found.put.waits_for == "space":
        return f"{_state(found)}{_partners(found.put, 'consumer')}"
    if found.get.waits_for == "item" or (found.get.waits_for == "role" and not found.length):
        return f"{_state(found)}{_partners(found.get, 'producer')}"
    if found.put.waits_for == "role" and found.maxsize and found.length >= found.maxsize:
        return f"{_state(found)}{_partners(found.put, 'consumer')}"
    if found.length and found.put.no_live_partner:
        return f"{_state(found)}{_partners(found.put, 'consumer')}"
    return f"{_state(found)}, and nothing blocks a put or a get."


def _state(found: _Found) -> str:
    if found.maxsize and found.length >= found.maxsize:
        return f"The queue is full ({found.length} of {found.maxsize})"
    if not found.length:
        return f"The queue is empty{_with_holders(found.in_flight)}"
    bound = f"{found.length} of {found.maxsize} items" if found.maxsize else _items(found.length)
    return f"The queue holds {bound}"


def _with_holders(in_flight: Unacknowledged) -> str:
    if not in_flight.number:
        return ""
    owners = in_flight.owners
    at = f" at {owners[0].peer.name}" if len(owners) == 1 else ""
    return f" ({in_flight}{at})"


def _stuck(found: _Found) -> str:
    """Return the sentence for a role that clients wait for, with a holder that cannot be known to
    live."""
    for side in (found.put, found.get):
        holder = side.holder
        if side.waits_for != "role" or holder is None:
            continue
        command = f"pressure-mp unlock {found.queue} {side.role}"
        if holder.state == "lost":
            return (
                f"No process can {side.operation}: a key of the queue is missing, which the server "
                f"or another program removed; `{command}` puts it back."
            )
        if holder.state == "foreign":
            last = f"; the last one known was {holder.peer.name}" if holder.peer else ""
            return (
                f"No process can {side.operation}: a {side.role} of another implementation is at "
                f"work, or died at work{last}. If it is dead, `{command}` lets others go on."
            )
    return ""


def _partners(side: Side, partner: str) -> str:
    """Return the end of the sentence: which clients could change that."""
    start = f": start a {partner}."
    known = side.partners
    if not known:
        return f" and no {partner} was ever seen{start}"
    if side.no_live_partner and len(known) == 1:
        return f" and its only known {partner}, {known[0].name}, has ended{start}"
    if side.no_live_partner:
        return f" and all {len(known)} {partner}s that are known have ended{start}"
    live = [peer for peer in known if peer.alive]
    doing = "take an item" if partner == "consumer" else "put one"
    if live:
        others = len(live) - 1
        more = f" and {others} more" if others else ""
        verb = "are" if others else "is"
        return (
            f"; {partner} {live[0].name}{more} {verb} alive, and "
            f"{'have' if others else 'has'} to {doing}."
        )
    return (
        f"; the last known {partner} is {known[0].name}, and whether it is alive is not known "
        f"here: look there, or start a {partner}."
    )


def _items(number: int) -> str:
    return "1 item" if number == 1 else f"{number} items"
