"""A diagnosis: what a queue's clients wait for, which clients are in the way, and what to do."""

from __future__ import annotations

from typing import NamedTuple

from ..engines.contract.brokers import Damage
from .diagnosis_in_flight import Unacknowledged, sum_up_lost
from .diagnosis_sides import Side
from .phrases import some

#: How many of the waiting clients a text names.
_NAMED = 3
#: The states in which a client of this package has a role, with a lease.
WITH_LEASE = ("waiting", "reading")

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
        return _sum_up(self)

    def explain(self, operation: str) -> str:
        """Say in one line what a ``"put"`` or a ``"get"`` waits for."""
        return f"{self._filling()}; {self._detail(self.put if operation == 'put' else self.get)}"

    def _filling(self) -> str:
        if self.deleting:
            return "is being deleted"
        unbounded = f"{some(self.length, 'item')}, without a bound"
        items = f"{self.length} of {self.maxsize} items" if self.maxsize else unbounded
        return f"holds {items}{', and is shut down' if self.closed else ''}"

    def _detail(self, side: Side) -> str:
        parts = [_holder(side), self._line(side)]
        if side.waits_for != "nothing":
            parts.append(_missing_partners(side))
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


def _missing_partners(side: Side) -> str:
    if not side.partners:
        return f"no {side.partner} was ever seen"
    if side.no_live_partner:
        return f"no live {side.partner} exists: the last one known is {side.partners[0]}"
    return ""


def _sum_up(found: Diagnosis) -> str:
    if found.deleting:
        return (
            "The queue is being deleted, and that waits for a client of another implementation "
            "that is at work, or died at work."
        )
    stuck = _stuck(found)
    if stuck:
        return stuck
    if found.damage == Damage.NO_SIGN.value:
        return (
            f"{_state(found)}, but the key that says that there is space is missing; the server or "
            "another program removed it, or a producer ended that had taken it. A producer of "
            "another implementation waits for it; the next put of this package puts it back, or "
            "`pressure-mp doctor --fix`."
        )
    if found.damage:
        return _DAMAGES[Damage(found.damage)]
    lost = "" if found.length else sum_up_lost(found.in_flight, found.closed)
    if lost:
        return lost
    if found.closed:
        left = some(found.length, "item") if found.length else "nothing"
        return f"The queue is shut down, with {left} left to get: no process can put any more."
    if found.put.waits_for == "space":
        return f"{_state(found)}{_partners(found.put)}"
    if found.get.waits_for == "item" or (found.get.waits_for == "role" and not found.length):
        return f"{_state(found)}{_partners(found.get)}"
    if found.put.waits_for == "role" and found.maxsize and found.length >= found.maxsize:
        return f"{_state(found)}{_partners(found.put)}"
    if found.length and found.put.no_live_partner:
        return f"{_state(found)}{_partners(found.put)}"
    return f"{_state(found)}, and nothing blocks a put or a get."


def _state(found: Diagnosis) -> str:
    if found.maxsize and found.length >= found.maxsize:
        return f"The queue is full ({found.length} of {found.maxsize})"
    if not found.length:
        return f"The queue is empty{_with_holders(found.in_flight)}"
    if found.maxsize:
        return f"The queue holds {found.length} of {found.maxsize} items"
    return f"The queue holds {some(found.length, 'item')}"


def _with_holders(in_flight: Unacknowledged) -> str:
    if not in_flight.number:
        return ""
    owners = in_flight.owners
    at = f" at {owners[0].peer.name}" if len(owners) == 1 else ""
    return f" ({in_flight}{at})"


def _stuck(found: Diagnosis) -> str:
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


def _partners(side: Side) -> str:
    """Return the end of the sentence: which clients could change that."""
    partner, known = side.partner, side.partners
    start = f": start a {partner}."
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
