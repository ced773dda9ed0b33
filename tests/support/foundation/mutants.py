"""Changes of the engine, each of which histories have to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from pressure_mp.engines.foundationdb.client import fdb_error
from pressure_mp.engines.foundationdb.store import _UNKNOWN, FoundationStore
from pressure_mp.engines.foundationdb.txn import FoundationTxn, Watch
from pressure_mp.engines.kv.bells import WatchedBells
from pressure_mp.engines.kv.line import Row
from pressure_mp.engines.kv.orders import Fifo
from pressure_mp.engines.kv.records import load_entry
from pressure_mp.engines.requests import queue

Mutant = Callable[[], AbstractContextManager[None]]

#: By a description of the change; and the traits of the histories in which it shows soon.
MUTANTS: dict[str, tuple[Mutant, dict[str, Any]]] = {}


def mutant(text: str, **likely: Any) -> Callable[[Callable[[], Iterator[None]]], None]:
    def note(change: Callable[[], Iterator[None]]) -> None:
        MUTANTS[text] = (contextmanager(change), likely)

    return note


def _in_place(where: Any, name: str, what: Any) -> Iterator[None]:
    with mock.patch.object(where, name, what):
        yield


def _reading_by_snapshot(part: bytes) -> Iterator[None]:
    """Reads of a part of a queue do not conflict."""
    get, read = FoundationTxn.get, FoundationTxn.range

    def mutated_get(self: Any, key: bytes, *, snapshot: bool = False) -> Any:
        return get(self, key, snapshot=snapshot or part in key)

    def mutated_range(self: Any, begin: bytes, *rest: Any) -> Any:
        if part not in begin:
            return read(self, begin, *rest)
        own, self._tr = self._tr, self._tr.snapshot
        try:
            return read(self, begin, *rest)
        finally:
            self._tr = own

    with mock.patch.multiple(FoundationTxn, get=mutated_get, range=mutated_range):
        yield


#: The part of a key before which the name of the queue is.
_NAME = b"queue\0"


@mutant("the lines are read by snapshot")
def _lines() -> Iterator[None]:
    yield from _reading_by_snapshot(_NAME + b"w")


@mutant("the items are read by snapshot")
def _items() -> Iterator[None]:
    yield from _reading_by_snapshot(_NAME + b"qi")


@mutant("items in flight are read by snapshot", is_joinable=True, loses=True)
def _in_flight() -> Iterator[None]:
    yield from _reading_by_snapshot(_NAME + b"qf")


@mutant("whether the queue is closed is read by snapshot", is_joinable=False, stalls=0.1)
def _about() -> Iterator[None]:
    yield from _reading_by_snapshot(_NAME + b"qh")


@mutant("a commit whose outcome is unknown is made again")
def _again() -> Iterator[None]:
    yield from _in_place(FoundationStore, "_was_done", lambda self, note: False)


@mutant("a commit whose outcome is unknown is taken for done")
def _taken_for_done() -> Iterator[None]:
    yield from _in_place(FoundationStore, "_was_done", lambda self, note: True)


@mutant("a transaction does not depend on its lane", stalls=0.1)
def _lane() -> Iterator[None]:
    depend = FoundationTxn.depend

    def mutated(self: Any, key: bytes) -> None:
        if b"lanes" not in key:
            depend(self, key)

    yield from _in_place(FoundationTxn, "depend", mutated)


@mutant("a look for the outcome of a commit does not end it")
def _look_alone() -> Iterator[None]:
    def mutated(self: Any, note: Any) -> bool:
        tr = self._transaction(100)

        def look() -> bool:
            return FoundationTxn(tr, self._pieces).get(note.lane) == note.value

        return self._until_done(tr, look)

    yield from _in_place(FoundationStore, "_was_done", mutated)


@mutant(
    "an interrupted call does not look whether its commit was done",
    is_joinable=False,
    interrupts=0.5,
)
def _no_outcome() -> Iterator[None]:
    def mutated(self: Any, tr: Any, note: Any, fate: Any) -> None:
        try:
            tr.commit().wait()
        except fdb_error() as error:
            if error.code not in _UNKNOWN or not self._was_done(note):
                raise
        if fate is not None:
            fate.is_done = True

    yield from _in_place(FoundationStore, "_commit", mutated)


@mutant("no waiter is woken")
def _no_wake() -> Iterator[None]:
    yield from _in_place(WatchedBells, "mark", lambda self, txn, tickets: None)


@mutant("a take does not wake the next in line")
def _no_next() -> Iterator[None]:
    do, wake = queue.do, queue.wake_ready
    takes = []

    def mutated_do(slot: Any, request: Any, caller: Any) -> Any:
        takes.append(type(request).__name__ == "Take")
        try:
            return do(slot, request, caller)
        finally:
            takes.pop()

    def mutated_wake(state: Any, lines: Any) -> None:
        if not (takes and takes[-1]):
            wake(state, lines)

    with mock.patch.multiple(queue, do=mutated_do, wake_ready=mutated_wake):
        yield


@mutant("a watch is set without a look at the bell")
def _no_look() -> Iterator[None]:
    class Absent:
        @staticmethod
        def present() -> bool:
            return False

    look = Watch._look
    yield from _in_place(Watch, "_look", lambda self, found: look(self, Absent()))


@mutant("a bell is silenced after the transaction that gave the place")
def _late_silence() -> Iterator[None]:
    listen = WatchedBells.listen

    def mutated(self: Any, session: Any) -> Any:
        self._store.write(
            lambda txn: txn.clear(self._key(session.ticket)),
            None,
            mock.MagicMock(wait=True, until=None),
        )
        return listen(self, session)

    yield from _in_place(WatchedBells, "listen", mutated)


@mutant("a caller that has ended keeps its place in line")
def _keeps_place() -> Iterator[None]:
    yield from _in_place(Row, "leave", lambda self, caller: None)


@mutant("an item that is given back goes behind the others", is_joinable=False, returns=0.5)
def _behind() -> Iterator[None]:
    def mutated(self: Any, taken: Any) -> None:
        for _, raw in taken:
            self.put(load_entry(raw), b"")

    yield from _in_place(Fifo, "restore", mutated)
