"""Whether a history of producers and workers, some of them killed, can be that of a TaskQueue."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from faults.histories import DONE, FENCED, NEVER, UNKNOWN, Operation

_CLOSINGS = ("task_done", "release", "bury")
#: In the record of a take THEN stands between the task that it acknowledged and the task that it
#: got; LOST stands for the latter, if it is not known.
THEN, LOST = ">", "?"


def divide(history: Iterable[Operation]) -> Iterator[Operation]:
    """The takes that acknowledged a task: as an acknowledgement, and a take."""
    for one in history:
        if one.kind != "next":
            yield one
            continue
        done, _, following = one.item.partition(THEN)
        yield dataclasses.replace(one, kind="task_done", item=done)
        if following == LOST or one.outcome == UNKNOWN:
            yield dataclasses.replace(one, kind="get", item="", outcome=UNKNOWN, end=NEVER)
        elif following:
            yield dataclasses.replace(one, kind="get", item=following)


@dataclass(frozen=True)
class Delivery:
    """A task in a worker's hand: how it came there, and what the worker said of it, if it did."""

    take: Operation
    closing: Operation | None

    @property
    def outcome(self) -> tuple[str, str]:
        """What was said, and what came of that; a worker that did not live to say anything may
        have been about to."""
        return (self.closing.kind, self.closing.outcome) if self.closing else ("", UNKNOWN)


class Lives:
    """The lives of tasks. ``killed`` names the workers that were killed, or stopped for so long
    that what they had was given to others; ``left`` has the tasks that are there in the end."""

    def __init__(
        self, history: Sequence[Operation], killed: Collection[str], left: Sequence[str] = ()
    ) -> None:
        self.history = history = list(divide(history))
        self.killed = killed
        self.left = left
        self.puts = {o.item: o for o in history if o.kind == "put" and o.outcome in (DONE, UNKNOWN)}
        self.unknown_takes = sum(o.kind == "get" and o.outcome == UNKNOWN for o in history)
        self.deliveries: dict[str, list[Delivery]] = defaultdict(list)
        by_client: dict[str, list[Operation]] = defaultdict(list)
        for operation in history:
            by_client[operation.client].append(operation)
        for operations in by_client.values():
            for operation, following in itertools.zip_longest(operations, operations[1:]):
                if operation.kind == "get" and operation.outcome == DONE:
                    closing = following if following and following.kind in _CLOSINGS else None
                    self.deliveries[operation.item].append(Delivery(operation, closing))
        for deliveries in self.deliveries.values():
            deliveries.sort(key=lambda delivery: delivery.take.end)

    @property
    def lost(self) -> list[str]:
        """Items that were put for certain, and are neither there nor may be acknowledged."""
        return [
            item
            for item, put in self.puts.items()
            if put.outcome == DONE and item not in self.left and not self._may_be_done(item)
        ]

    def _may_be_done(self, item: str) -> bool:
        return any(
            delivery.outcome in (("task_done", DONE), ("task_done", UNKNOWN))
            for delivery in self.deliveries.get(item, ())
        )

    @property
    def processed(self) -> int:
        """How many tasks were acknowledged for certain."""
        return sum(
            any(delivery.outcome == ("task_done", DONE) for delivery in deliveries)
            for deliveries in self.deliveries.values()
        )

    @property
    def again(self) -> int:
        """How many deliveries came after a worker was killed or stopped that had the task."""
        return sum(
            1
            for deliveries in self.deliveries.values()
            for before, _ in itertools.pairwise(deliveries)
            if before.outcome[1] in (UNKNOWN, FENCED)
        )

    def problems(self) -> Iterator[str]:
        """What cannot be."""
        if self.lost:
            yield f"{len(self.lost)} tasks are lost: {self.lost[:10]}"
        for item in self.left:
            if item not in self.puts:
                yield f"{item} is there, and no producer put it"
        if len(set(self.left)) != len(self.left):
            yield "a task is there twice"
        for item, deliveries in self.deliveries.items():
            yield from self._problems_of(item, deliveries)

    def problems_of_results(self, results: Mapping[str, str | None]) -> Iterator[str]:
        """What cannot be kept: a result is the name of the worker that acknowledged the task."""
        for item, result in results.items():
            said = [
                (delivery.outcome[1], delivery.take.client)
                for delivery in self.deliveries.get(item, ())
                if delivery.outcome[0] == "task_done"
            ]
            certain = [worker for outcome, worker in said if outcome == DONE]
            possible = [worker for outcome, worker in said if outcome == UNKNOWN]
            if certain and result not in certain:
                yield f"{item} was acknowledged by {certain}, and its result is that of {result}"
            elif not certain and result is not None and result not in possible:
                yield f"{item} has the result of {result}, which did not acknowledge it"

    def _problems_of(self, item: str, deliveries: list[Delivery]) -> Iterator[str]:
        if item not in self.puts or deliveries[0].take.end < self.puts[item].begin:
            yield f"{deliveries[0].take.call}: no producer had put that task"
        for delivery in deliveries:
            worker = delivery.take.client
            kind, outcome = delivery.outcome
            if outcome in (FENCED, UNKNOWN) and worker not in self.killed:
                yield f"{delivery.take.call} was taken away ({kind}, {outcome}) from one that lived"
            if (kind, outcome) == ("task_done", DONE):
                assert delivery.closing is not None
                later = [one for one in deliveries if one.take.begin > delivery.closing.end]
                if later or item in self.left:
                    yield f"{item} was acknowledged by {worker}, and came again: {later}"
        for before, after in itertools.pairwise(deliveries):
            # A worker that is stopped before it notes that it took a task notes that late.
            if before.outcome == after.outcome == ("task_done", DONE):
                yield f"{item} was processed by {before.take.client} and {after.take.client}"
