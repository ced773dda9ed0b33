"""The state of a queue during a history, and whether a queue can have done what was seen.

An item is *settled* when the guarantees say that nothing may lose it any more: its put returned,
and the puts of the same process were flushed. Until then it is lost if its producer is
killed, and then all later ones of that producer are lost too.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from faults.histories import DONE, FULL, NEVER, UNKNOWN, Operation
from faults.history_checker import Deliveries, History, check, nothing_invented


@dataclass
class Queue:
    name: str
    kind: str
    bound: int
    bound_changed: bool = False
    #: Where its items are in shared memory, if they can be; and whether that file was removed.
    file: str = ""
    unlinked: bool = False
    puts: dict[str, Operation] = field(default_factory=dict)
    #: What a call of an actor is putting; and what was put, by actor, and is not settled.
    intended: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unsettled: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    operations: list[Operation] = field(default_factory=list)
    got: set[str] = field(default_factory=set)
    held: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: set[str] = field(default_factory=set)
    #: How many items calls that were killed can have got.
    unknown: int = 0
    #: Actors whose items go to others: they were killed or stopped, or ended.
    losers: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    #: Items whose ``task_done`` was killed: they may come again.
    in_doubt: set[str] = field(default_factory=set)
    #: Items that the last call before a restart of the broker got: they may come again.
    may_come_again: set[str] = field(default_factory=set)
    shut_down: bool = False
    #: Whether items may be gone that were not got: they were dropped by a shutdown.
    dropped: bool = False

    @property
    def redelivers(self) -> bool:
        return self.kind.endswith(("JoinableQueue", "TaskQueue"))

    @property
    def anonymous(self) -> bool:
        return not self.kind.startswith("named-")

    # What happens.

    def intend(self, actor: str, items: list[str]) -> None:
        """A call that puts these was sent to an actor."""
        now = time.monotonic_ns()
        self.intended[actor] = list(items)
        for item in items:
            self.puts[item] = Operation(actor, "put", now, item=item)

    def note(self, done: Operation) -> None:
        """An operation has ended."""
        if done.kind == "put":
            self._note_put(done)
            return
        self.operations.append(done)
        if done.kind == "get" and done.outcome == DONE:
            self.held[done.client].append(done.item)
            self.got.add(done.item)
            put = self.puts.get(done.item)
            if put is not None and put.outcome == UNKNOWN:
                self.puts[done.item] = replace(put, end=done.end, outcome=DONE)
        elif done.kind == "task_done" and done.item in self.held[done.client]:
            self.held[done.client].remove(done.item)
            if done.outcome == DONE:
                self.acknowledged.add(done.item)

    def _note_put(self, done: Operation) -> None:
        self.intended[done.client].remove(done.item)
        if done.outcome == DONE:
            if done.item not in self.got:
                done = replace(done, end=NEVER, outcome=UNKNOWN)
            self.puts[done.item] = done
            if not self.shut_down:
                self.unsettled[done.client].append(done.item)
            return
        self.puts.pop(done.item)
        if done.outcome == FULL:
            self.operations.append(done)

    def come_before(self, actor: str) -> None:
        """The items that an actor put come before items that are put from now on."""
        for item in self.unsettled[actor]:
            self.puts[item] = replace(self.puts[item], end=time.monotonic_ns())

    def settle(self, actor: str) -> None:
        """The items that an actor put are where nothing loses them."""
        for item in self.unsettled.pop(actor, ()):
            self.puts[item] = replace(self.puts[item], end=time.monotonic_ns(), outcome=DONE)

    def drop(self) -> None:
        """The queued items may be gone."""
        self.dropped = True
        self.unsettled.clear()
        for item, put in self.puts.items():
            self.puts[item] = replace(put, end=NEVER, outcome=UNKNOWN)

    def leave(self, actor: str) -> None:
        """An actor was killed: the items that it was about to put last may be there or not."""
        left = self.intended[actor]
        begun = [put.begin for item, put in self.puts.items() if put.client == actor]
        for number, item in enumerate(left):
            self.puts[item] = replace(self.puts[item], begin=max(begun) + number + 1)
        self.unsettled[actor] += left

    def bury(self, actor: str) -> None:
        """An actor has ended, or was killed: its items in flight go back."""
        self.dead.add(actor)
        if self.held[actor]:
            self.losers.add(actor)

    def kill(self, actor: str, number: int, acknowledges: bool) -> None:
        """An actor was killed in a call that got so many items at a time."""
        self.unknown += number
        if acknowledges:
            self.in_doubt.update(self.held[actor])

    # What can be there.

    def _gone(self) -> set[str]:
        """The items that were got, and do not come back."""
        if not self.redelivers:
            return {one.item for one in self.operations if one.kind == "get"}
        living = [items for actor, items in self.held.items() if actor not in self.dead]
        return set().union(*living) | self.acknowledged | self.in_doubt

    def certain(self, working: set[str]) -> int:
        """How many items there are for certain, or soon, and not in flight; ``working`` are the
        actors that can send what they put."""
        if self.dropped:
            return 0
        gone = self._gone()
        there = sum(
            put.outcome == DONE or (put.client in working and item in self.unsettled[put.client])
            for item, put in self.puts.items()
            if item not in gone
        )
        return there - (0 if self.redelivers else self.unknown)

    def most(self) -> int:
        """How many there can be."""
        gone = self._gone()
        lost = sum(len(self.held[actor]) for actor in self.losers - self.dead)
        return sum(item not in gone for item in self.puts) + lost + len(self.in_doubt)

    def has_room(self, number: int) -> bool:
        """Whether there is space for so many, for certain."""
        return not self.bound or self.most() + number <= self.bound

    def wrong_counts(self, found: dict[str, Any] | None) -> Iterator[str]:
        """The counts that are wrong, where all puts are flushed and no call is under way."""
        if found is None:
            return
        least, most = self._lengths()
        if not least <= found["qsize"] <= most:
            yield f"qsize is {found['qsize']}, not {least} to {most}"
        if least == most and "empty" in found:
            is_full = 0 < self.bound <= least
            if (found["empty"], found["full"]) != (least == 0, is_full):
                yield f"there are {least} items of {self.bound}, and it says {found}"
        if "unfinished" in found and not self.losers and not self.unknown and not self.dropped:
            unfinished = [put for item, put in self.puts.items() if item not in self.acknowledged]
            sure = sum(put.outcome == DONE for put in unfinished)
            if not sure <= found["unfinished"] <= len(unfinished):
                yield f"{found['unfinished']} are unfinished, not {sure} to {len(unfinished)}"

    def _lengths(self) -> tuple[int, int]:
        if self.dropped:
            return 0, self.most()
        gone = self._gone()
        settled = sum(put.outcome == DONE for item, put in self.puts.items() if item not in gone)
        back = {item for actor in self.losers for item in self.held[actor]} - gone
        return settled - self.unknown - (len(back) if self.redelivers else 0), self.most()

    # The end.

    def missing(self) -> list[str]:
        """The items that must still come, or that killed calls got."""
        if self.dropped:
            return []
        gone = self._gone()
        return [item for item, put in self.puts.items() if put.outcome == DONE and item not in gone]

    def lacks(self) -> bool:
        """Whether something is missing."""
        return len(self.missing()) > (0 if self.redelivers else self.unknown)

    def problems(self) -> Iterator[str]:
        """What no queue does."""
        killed = [f"killed-{n}" for n in range(self.unknown)]
        operations = [*self.puts.values(), *self.operations]
        operations += [Operation(name, "get", 0.0) for name in killed]
        history = History(operations, bound=0 if self.bound_changed else self.bound)
        if self.redelivers and (self.losers or killed):
            yield from check(history, [nothing_invented])
            yield from Deliveries(history, self.losers | set(killed)).problems()
        else:
            found = check(history)
            again = self.may_come_again
            yield from (one for one in found if not any(item in one for item in again))
        got = set(history.gets_of)
        yield from self._late(history, got)
        if not self.unknown and not self.dropped:
            yield from self._gaps(got)

    def _late(self, history: History, got: set[str]) -> Iterator[str]:
        for shut in history.shutdowns:
            for item in got & set(self.puts):
                if self.puts[item].begin > shut.end:
                    yield f"{item} was put after the queue was shut down"

    def _gaps(self, got: set[str]) -> Iterator[str]:
        """Of what a killed producer did not flush, the first ones arrived."""
        for actor, items in self.unsettled.items():
            arrived = [item in got for item in items]
            if arrived != sorted(arrived, reverse=True):
                yield f"of {items} of {actor} there came {[one for one in items if one in got]}"
