"""Ordered keys in a cluster of FoundationDB.

A commit can fail so that it is not known whether it was done. So each transaction that writes notes
a number in a lane, which no other transaction uses at the same time, and depends on that note. When
the outcome is not known, the note tells it: if another number is written there first, the commit
will never be done.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from ...exceptions import PressureError
from ..contract.address import SimpleAddress
from ..contract.session import SHORTEST_TRY
from ..kv.engine import KvEngine
from ..kv.packing import pack
from ..kv.records import dump, load
from ..kv.store import Body, Busy, Fate, How, Traits
from .client import TIMED_OUT, fdb_error, open_database, ready, translated
from .txn import FoundationTxn, Watch

R = TypeVar("R")

#: The errors after which a commit may have been done, or may yet be.
_UNKNOWN = 1021, TIMED_OUT, 1039
#: Seconds for which a call without a limit of its own is tried, and for which the outcome of a
#: commit is looked for.
_PATIENCE = 10.0
#: Milliseconds after which a lane is not used any more, and the most that are removed at a time.
_OLD, _MOST = 86_400_000, 100


class _Note(NamedTuple):
    """A key and a value, unlike all other values of that key, which a transaction writes."""

    lane: bytes
    value: bytes


class FoundationStore:
    """The keys with one prefix in a cluster."""

    traits = Traits(optimistic=True, one_host=False)

    def __init__(self, path: str, prefix: str) -> None:
        self._path = path
        self._pieces = pack((prefix, "pieces"))
        self._lanes = pack((prefix, "lanes"))
        self.after_fork()

    def after_fork(self) -> None:
        self._database: Any = None
        self._free: deque[bytes] = deque()

    def _transaction(self, seconds: float) -> Any:
        if self._database is None:
            self._database = open_database(self._path)
        tr = self._database.create_transaction()
        tr.options.set_timeout(max(int(seconds * 1000), 1))
        return tr

    def write(self, body: Body[R], fate: Fate | None, how: How) -> R:
        if not how.wait:
            raise Busy  # each call waits for the cluster
        seconds = _PATIENCE if how.until is None else how.until - time.monotonic()
        seconds = max(seconds, SHORTEST_TRY)
        tr = self._transaction(seconds)
        try:
            lane = self._free.pop()
        except IndexError:
            lane = self._new_lane(self._transaction(seconds))
        try:
            return self._until_done(tr, lambda: self._try(tr, body, fate, lane))
        finally:
            self._free.append(lane)

    def _try(self, tr: Any, body: Body[R], fate: Fate | None, lane: bytes) -> R:
        txn = FoundationTxn(tr, self._pieces)
        reply = body(txn)
        if txn.has_written:
            note = self._note(lane)
            txn.depend(lane)
            txn.set(*note)
            self._commit(tr, note, fate)
        return reply

    def _note(self, lane: bytes) -> _Note:
        return _Note(lane, dump([_now(), os.urandom(8).hex()]))

    def _commit(self, tr: Any, note: _Note, fate: Fate | None) -> None:
        try:
            try:
                ready(tr.commit()).wait()
            except fdb_error() as error:
                if error.code not in _UNKNOWN or not self._was_done(note):
                    raise
            if fate is not None:
                fate.is_done = True
        except (fdb_error(), PressureError):
            raise
        except BaseException:
            # A signal handler raised it: before the commit, in the midst of it, while its outcome
            # was looked for, or after it.
            with suppress(PressureError):
                if fate is not None and self._was_done(note):
                    fate.is_done = True
            raise

    def _was_done(self, note: _Note) -> bool:
        """Tell whether a transaction was committed; if not, it never will be."""
        tr = self._transaction(_PATIENCE)

        def look() -> bool:
            txn = FoundationTxn(tr, self._pieces)
            if txn.get(note.lane) == note.value:
                return True
            txn.set(*self._note(note.lane))
            ready(tr.commit()).wait()
            return False

        return self._until_done(tr, look)

    def _until_done(self, tr: Any, attempt: Callable[[], R]) -> R:
        """Make an attempt with a transaction, and again after each error that passes, for as long
        as FoundationDB says. Raises an error that stays."""
        while True:
            try:
                return attempt()
            except fdb_error() as error:
                try:
                    ready(tr.on_error(error)).wait()
                except fdb_error() as final:
                    raise translated(final, self._path) from final

    def _new_lane(self, tr: Any) -> bytes:
        """Return a lane. Removes lanes that were not used for long."""
        now = _now()
        old = pack((now - _OLD,))

        def remove() -> None:
            found = tr.snapshot.get_range(self._lanes, self._lanes + old, _MOST)
            ready(found._future)
            for lane, note in found:
                if load(note)[0][0] < now - _OLD:
                    tr.add_read_conflict_key(lane)
                    tr.clear(lane)
            ready(tr.commit()).wait()

        self._until_done(tr, remove)
        return self._lanes + pack((now, os.urandom(8)))

    def watch(self, key: bytes, ring: Callable[[], None]) -> Callable[[], None]:
        return Watch(self._transaction(_PATIENCE), key, ring).stop

    def close(self) -> None:
        """Do nothing: all databases of a process share the library's connections."""


def _now() -> int:
    return time.time_ns() // 1_000_000


class FoundationEngine(KvEngine):
    """The queues in one cluster."""

    def __init__(self, address: SimpleAddress) -> None:
        super().__init__(address, FoundationStore(address.place, address.prefix))
