"""Whether a history of concurrent operations can be that of one bounded FIFO queue.

Each rule looks at a whole history and yields each breach of it. A rule claims only facts that
are certain: an operation happens at some unknown moment between its begin and its end, and one with
an unknown outcome may have happened at any time after its begin, or never.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from faults.histories import CLOSED, DONE, EMPTY, FULL, NEVER, UNKNOWN, Operation

#: The client that got what was left in the queue in the end.
REST = "the rest"

_ROLES = {"put": "producer", "get": "consumer"}


class History:
    """Operations, sorted out. ``rest`` is what was in the queue in the end, oldest first."""

    def __init__(
        self, operations: Sequence[Operation], rest: Sequence[str] = (), bound: int = 0
    ) -> None:
        self.operations = operations
        self.bound = bound
        last = max((o.end for o in operations if o.end != NEVER), default=0.0)
        last = max([last, *(o.begin for o in operations)])
        self.rest = [
            Operation(REST, "get", last + 2 * n + 1, last + 2 * n + 2, DONE, item)
            for n, item in enumerate(rest)
        ]
        puts = [o for o in operations if o.kind == "put" and o.outcome in (DONE, UNKNOWN)]
        gets = [o for o in operations if o.kind == "get" and o.outcome == DONE]
        self.puts = puts
        self.gets = gets + self.rest
        self.put_of = {o.item: o for o in puts}
        self.gets_of: dict[str, list[Operation]] = defaultdict(list)
        for get in self.gets:
            self.gets_of[get.item].append(get)
        assert len(self.put_of) == len(puts), "to be told apart, all items must differ"
        self.unknown_gets = [o for o in operations if o.kind == "get" and o.outcome == UNKNOWN]
        self.shutdowns = [o for o in operations if o.kind == "shutdown"]

    @property
    def lost(self) -> list[str]:
        """The items that were put for certain, and that no known get returned."""
        return [o.item for o in self.puts if o.outcome == DONE and o.item not in self.gets_of]

    @property
    def extra(self) -> int:
        """How many more gets there were than items that were got."""
        return sum(len(gets) - 1 for gets in self.gets_of.values())


def nothing_invented(history: History) -> Iterator[str]:
    """Each item that was got had been put, and not only later."""
    for get in history.gets:
        put = history.put_of.get(get.item)
        if put is None:
            yield f"{get.call}: no client put that item"
        elif get.end < put.begin:
            yield f"{get.call} ended before {put.call} began"


def nothing_twice(history: History) -> Iterator[str]:
    """No item was got twice."""
    for item, gets in history.gets_of.items():
        if len(gets) > 1:
            yield f"{item} was got {len(gets)} times, by {', '.join(get.client for get in gets)}"


def nothing_lost(history: History) -> Iterator[str]:
    """Missing items can have been got by gets with an unknown outcome, one item by each."""
    missing = len(history.lost)
    if missing > len(history.unknown_gets):
        yield (
            f"{missing} items are missing, and at most {len(history.unknown_gets)} can have been "
            f"got by clients that did not live to tell: {history.lost[:10]}"
        )


def oldest_first(history: History) -> Iterator[str]:
    """When one put had ended before another began, the second item's get does not end before the
    first item's begins. So the items of one producer come in its order, too."""
    # A missing item may have been got at any time: only items that were got are compared.
    firsts = sorted((o for o in history.puts if o.item in history.gets_of), key=lambda o: o.end)
    ends = [o.end for o in firsts]
    latest: list[Operation] = []  # of the first n items put: the one whose get began last
    for put in firsts:
        get = min(history.gets_of[put.item], key=lambda o: o.begin)
        latest.append(max(latest[-1], get, key=lambda o: o.begin) if latest else get)
    for put in firsts:
        before = bisect.bisect_left(ends, put.begin)
        if not before:
            continue
        got = min(history.gets_of[put.item], key=lambda o: o.end)
        older = latest[before - 1]
        if got.end < older.begin:
            yield f"{got.call} ended before {older.call} began, but {older.item} was put first"


def producers_in_order(history: History) -> Iterator[str]:
    """The items of one producer are got in its order: by each consumer, and by all of them where
    one get had ended before the other began."""
    of_producer: dict[str, list[Operation]] = defaultdict(list)
    for put in history.puts:
        of_producer[put.client].append(put)
    for puts in of_producer.values():
        earliest: Operation | None = None  # of the gets of later items, the one that ended first
        for put in sorted(puts, key=lambda o: o.begin)[::-1]:  # of two at once the latter first
            for get in history.gets_of.get(put.item, ()):
                if earliest is not None and earliest.end < get.begin:
                    yield f"{earliest.call} ended before {get.call} began"
                if earliest is None or get.end < earliest.end:
                    earliest = get


def producers_in_order_at_each_consumer(history: History) -> Iterator[str]:
    """Each consumer gets the items of one producer in its order: the part of
    :func:`producers_in_order` that a queue keeps when consumers prefetch."""
    latest: dict[tuple[str, str], Operation] = {}
    for get in sorted(history.gets, key=lambda o: o.begin):
        put = history.put_of.get(get.item)
        if put is None:
            continue
        before = latest.setdefault((put.client, get.client), put)
        if put.begin < before.begin:
            yield f"{get.call} came after {before.item}, which was put later"
        latest[put.client, get.client] = put


def bound_kept(history: History) -> Iterator[str]:
    """Never were there more items in the queue than the bound allows."""
    if not history.bound:
        return
    for when, least, _ in _lengths(history):
        if least > history.bound:
            yield f"at {when:.0f} at least {least} items were in a queue of {history.bound}"
            return


def honest_refusals(history: History) -> Iterator[str]:
    """A call that was told that the queue was empty, full or shut down came when it can have been
    so, and no item was put after the queue was shut down."""
    if any(o.end != NEVER for o in history.shutdowns):
        shut = min(o.end for o in history.shutdowns)
        for put in history.puts:
            if put.outcome == DONE and put.begin > shut:
                yield f"{put.call} was done after the queue was shut down"
    begun = min((o.begin for o in history.shutdowns), default=NEVER)
    lengths = _lengths(history)
    times = [when for when, _, _ in lengths]
    for o in history.operations:
        if o.outcome == CLOSED and o.end < begun:
            yield f"{o.call} was told of a shutdown before there was one"
        empty = o.outcome == EMPTY or (o.outcome == CLOSED and o.kind == "get")
        if empty and min(least for _, least, _ in _during(lengths, times, o)) > 0:
            yield f"{o.call} was told that nothing was there, and there was all the time"
        full = o.outcome == FULL and history.bound
        if full and max(most for _, _, most in _during(lengths, times, o)) < history.bound:
            yield f"{o.call} was told that the queue was full, and it never was meanwhile"


Length = tuple[float, int, int]


def _lengths(history: History) -> list[Length]:
    """From which moment on: the least and the most items that can have been in the queue."""
    changes: list[Length] = [(-NEVER, 0, 0)]
    for put in history.puts:
        changes.append((put.begin, 0, 1))
        if put.outcome == DONE:
            changes.append((put.end, 1, 0))
    for get in (*history.gets, *history.unknown_gets):
        changes.append((get.begin, -1, 0))
        if get.outcome == DONE:
            changes.append((get.end, 0, -1))
    least = most = 0
    lengths = []
    # At one moment: first what makes a violation less certain.
    for when, less, more in sorted(changes, key=lambda change: (change[0], change[1], -change[2])):
        least, most = least + less, most + more
        lengths.append((when, least, most))
    return lengths


def _during(lengths: list[Length], times: list[float], operation: Operation) -> list[Length]:
    first = bisect.bisect_left(times, operation.begin) - 1
    return lengths[max(first, 0) : bisect.bisect_right(times, operation.end)]


def one_holder(history: History) -> Iterator[str]:
    """While one client has a role, no other has it, and no other can have used it."""
    for role in ("producer", "consumer"):
        used = [
            o
            for o in history.operations
            if o.outcome == DONE and role in (o.kind, _ROLES.get(o.kind))
        ]
        held = sorted((o for o in used if o.kind == role), key=lambda o: o.begin)
        for before, after in itertools.pairwise(held):
            if after.begin < before.end:
                yield f"{after.call} began before {before.call} had ended"
        begins = [o.begin for o in held]
        for o in used:
            at = bisect.bisect_right(begins, o.begin) - 1
            if o.kind != role and at >= 0 and o.end < held[at].end and o.client != held[at].client:
                yield f"{o.call} was done while {held[at].client} was the {role}"


Rule = Callable[[History], Iterator[str]]

#: What holds for every queue.
RULES: tuple[Rule, ...] = (
    nothing_invented,
    nothing_twice,
    nothing_lost,
    oldest_first,
    producers_in_order,
    bound_kept,
    honest_refusals,
    one_holder,
)

#: What holds when clients send and fetch many items at a time.
BUFFERED_RULES: tuple[Rule, ...] = (
    nothing_invented,
    nothing_twice,
    nothing_lost,
    producers_in_order_at_each_consumer,
)


def check(history: History, rules: Sequence[Rule] = RULES) -> list[str]:
    """The problems of the history; each line begins with the rule."""
    return [f"{rule.__name__}: {problem}" for rule in rules for problem in rule(history)]


class Deliveries:
    """What at-least-once delivery promises when consumers are killed. ``history`` has a
    ``task_done`` of the item for each get that was acknowledged; ``killed`` names the consumers
    that were killed, or stopped for so long that what they had was given to others."""

    def __init__(self, history: History, killed: Iterable[str]) -> None:
        self.history = history
        self._killed = set(killed)
        acknowledged = Counter(
            (o.client, o.item)
            for o in history.operations
            if o.kind == "task_done" and o.outcome == DONE
        )
        self._kept: set[Operation] = set(history.rest)
        for get in sorted(history.gets, key=lambda o: o.end, reverse=True):
            key = (get.client, get.item)
            if get.client not in self._killed or acknowledged[key] > 0:
                # A consumer whose item was taken away may get it again, and acknowledges it then.
                self._kept.add(get)
                acknowledged[key] -= 1

    @property
    def in_flight(self) -> int:
        """How many items the killed consumers had got and not acknowledged, at most."""
        unknown = sum(get.client in self._killed for get in self.history.unknown_gets)
        return len(self.history.gets) - len(self._kept) + unknown

    def problems(self) -> Iterator[str]:
        """Nothing is lost, and what came twice was in flight at a consumer that was killed."""
        if self.history.lost:
            yield f"{len(self.history.lost)} items were lost: {self.history.lost[:10]}"
        for item, gets in self.history.gets_of.items():
            kept = [get for get in gets if get in self._kept]
            again = [get for get in gets if any(get.begin > one.end for one in kept)]
            if len(kept) > 1 or again:
                yield (
                    f"{item} was got by {', '.join(get.client for get in gets)}, although it was "
                    f"not in flight at a killed consumer: {kept[0].client}"
                )
        if self.history.extra > self.in_flight:
            yield f"{self.history.extra} duplicates, with {self.in_flight} items in flight"
