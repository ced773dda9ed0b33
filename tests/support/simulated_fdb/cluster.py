"""The cluster: versions of all keys, the order of commits, watches. Every choice is drawn from one
random number generator, and time is the driver's."""

from __future__ import annotations

import random
import threading
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from simulated_fdb.drivers import Driver
from simulated_fdb.errors import Failed, Unreachable
from simulated_fdb.mutations import Op, applied, stamp_of, stamped
from simulated_fdb.ranges import Range, overlap, point

#: Versions, of which a million come in a second: a transaction may be so old.
WINDOW = 5_000_000
#: By so many versions a recovery goes on.
JUMP = 100_000_000
#: The errors with which a watch may end.
WATCH_ERRORS = (1009, 1101)
#: A version that fails does so within so many reads.
_MOST_READS = 20

Mutation = tuple[Op, bytes, bytes]


class Commit(NamedTuple):
    """What a client sends to have a transaction committed."""

    #: The version that it read; None if it read nothing.
    version: int | None
    reads: list[Range]
    writes: list[Range]
    mutations: list[Mutation]


class Stamp(NamedTuple):
    """The version of a commit, and its number among the commits of that version."""

    version: int
    order: int

    def __bytes__(self) -> bytes:
        return stamp_of(self.version, self.order)


@dataclass
class Faults:
    """How probable each fault is, for each commit, read version or watch that can have it."""

    #: A commit is refused although it conflicts with none (1020).
    refused: float = 0.0
    #: The outcome of a commit is unknown (1021): it is never done, it is done, it is done later.
    #: FoundationDB's client excludes the last; so only commits for which no client waits are late.
    never: float = 0.0
    done: float = 0.0
    late: float = 0.0
    #: One of the first reads of a version, or a commit after them, is too old (1007); or a server
    #: lags behind when one of the first reads comes (1009, 1037).
    too_old: float = 0.0
    lagging: float = 0.0
    #: A watch fails when it is set.
    watch: float = 0.0
    #: A commit gets the version of the one before it, if no client read that yet.
    joined: float = 0.3


@dataclass
class Counts:
    """What happened."""

    commits: int = 0
    conflicts: int = 0
    unknown: int = 0
    too_old: int = 0
    watches: int = 0
    fired: int = 0


@dataclass(eq=False)
class Watch:
    """A client that waits for another value of a key."""

    key: bytes
    value: bytes | None
    fire: Callable[[int], None]  # with the number of an error, or 0
    is_over: bool = field(default=False)


Reply = Callable[[Stamp | Failed], None]


class Cluster:
    """All keys. Threads may call it at the same time."""

    def __init__(
        self, driver: Driver, rng: random.Random | None = None, faults: Faults | None = None
    ) -> None:
        self.driver = driver
        self.rng = rng or random.Random(0)
        self.faults = faults or Faults()
        self.counts = Counts()
        self._lock = threading.RLock()
        self._ahead = 1_000_000 - driver.clock()  # what a version is more than the clock
        self._last = Stamp(1_000_000, 0)
        self._is_seen = True  # whether a transaction may have read the last version
        self._log: deque[tuple[int, list[Range]]] = deque()
        self._keys: list[bytes] = []  # of all chains, in order
        self._chains: dict[bytes, list[tuple[int, bytes | None]]] = {}
        self._written: deque[tuple[int, bytes]] = deque()
        self._in_flight: list[tuple[Commit, Reply]] = []
        self._watches: dict[bytes, list[Watch]] = {}
        self._is_reachable = True
        self._waiting: list[Callable[[], None]] = []
        #: By version how many reads of it go well yet, and the error after these.
        self._failing: dict[int, tuple[int, int]] = {}

    def read_version(self) -> int:
        """A version with all that was committed."""
        with self._lock:
            self._must_be_reachable()
            now = self._now()
            if now > self._last.version:
                self._last = Stamp(now, 0)  # as after a commit of nothing
            self._is_seen = True
            self._draw_failure(self._last.version)
            return self._last.version

    def _draw_failure(self, version: int) -> None:
        draw, faults = self.rng.random(), self.faults
        if draw < faults.too_old + faults.lagging:
            error = 1007 if draw < faults.too_old else self.rng.choice((1009, 1037))
            self._failing[version] = (self.rng.randrange(_MOST_READS), error)

    def get(self, key: bytes, version: int) -> bytes | None:
        with self._lock:
            self._check_read(version)
            return self._value(key, version)

    def get_range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool, version: int
    ) -> list[tuple[bytes, bytes]]:
        """The first so many keys; with a limit of 0, all."""
        with self._lock:
            self._check_read(version)
            found: list[tuple[bytes, bytes]] = []
            keys = self._span(begin, end)
            for key in reversed(keys) if reverse else keys:
                value = self._value(key, version)
                if value is not None:
                    found.append((key, value))
                    if len(found) == limit:
                        break
            return found

    def send(self, commit: Commit, reply: Reply) -> None:
        """Have a transaction committed. Its client may be gone before it is done."""
        sent = (commit, reply)
        with self._lock:
            self._in_flight.append(sent)
        self.when_reachable(lambda: self._arrive(sent))

    def watch(self, key: bytes, value: bytes | None, fire: Callable[[int], None]) -> Watch:
        """Have ``fire`` called once, when the key has another value than that, or cannot be
        watched any more. A client that looks late does not see a value that came and went."""
        watch = Watch(key, value, fire)
        with self._lock:
            self.counts.watches += 1
            if self.rng.random() < self.faults.watch:
                self._end(watch, self.rng.choice(WATCH_ERRORS))
            else:
                self._watches.setdefault(key, []).append(watch)
                self._look_at([key])
        return watch

    def unwatch(self, watch: Watch) -> None:
        with self._lock:
            watch.is_over = True
            self._forget(watch)

    def watching(self) -> int:
        """How many watches there are."""
        return sum(map(len, self._watches.values()))

    def stop(self) -> None:
        """Answer nothing, until :meth:`go_on`."""
        with self._lock:
            self._is_reachable = False

    def go_on(self) -> None:
        """Answer what came meanwhile."""
        with self._lock:
            self._is_reachable = True
            waiting, self._waiting = self._waiting, []
        for job in waiting:
            self.driver.post(job)

    def when_reachable(self, job: Callable[[], None]) -> None:
        with self._lock:
            if not self._is_reachable:
                self._waiting.append(job)
                return
        self.driver.post(job)

    def _must_be_reachable(self) -> None:
        if not self._is_reachable:
            raise Unreachable

    def recover(self) -> None:
        """Fail as a whole, and go on: the outcome of the commits in flight is unknown, no watch
        is left, and no earlier version can be read."""
        with self._lock:
            for commit, reply in self._in_flight:
                if self.rng.random() < 0.5:
                    self._try(commit)
                reply(self._unknown())
            self._in_flight.clear()
            self._ahead += JUMP
            for watch in [one for some in self._watches.values() for one in some]:
                self._end(watch, self.rng.choice(WATCH_ERRORS))

    def _now(self) -> int:
        return self.driver.clock() + self._ahead

    def _check(self, version: int) -> None:
        if version < self._now() - WINDOW:
            self.counts.too_old += 1
            raise Failed(1007)

    def _check_read(self, version: int) -> None:
        self._must_be_reachable()
        self._check(version)
        left, error = self._failing.get(version, (1, 0))
        if not left:
            self._fail(version, error)
        if error:
            self._failing[version] = (left - 1, error)

    def _fail(self, version: int, error: int) -> None:
        del self._failing[version]
        self.counts.too_old += error == 1007
        raise Failed(error)

    def _value(self, key: bytes, version: int) -> bytes | None:
        chain = self._chains.get(key)
        if not chain:
            return None
        at = bisect_right(chain, version, key=lambda one: one[0])
        return chain[at - 1][1] if at else None

    def _span(self, begin: bytes, end: bytes) -> list[bytes]:
        return self._keys[bisect_left(self._keys, begin) : bisect_left(self._keys, end)]

    def _arrive(self, sent: tuple[Commit, Reply]) -> None:
        with self._lock:
            if sent not in self._in_flight:
                return  # a recovery came before it
            self._in_flight.remove(sent)
            outcome = self._outcome(sent[0])
        sent[1](outcome)

    def _outcome(self, commit: Commit) -> Stamp | Failed:
        """Do it, if it is to be done, and return what the client is told."""
        draw, faults = self.rng.random(), self.faults
        if draw < faults.never:
            return self._unknown()
        draw -= faults.never
        if draw < faults.late:
            self.driver.post(lambda: self._do_late(commit))
            return self._unknown()
        draw -= faults.late
        if draw < faults.refused:
            self.counts.conflicts += 1
            return Failed(1020)
        draw -= faults.refused
        outcome = self._try(commit)
        return self._unknown() if draw < faults.done else outcome

    def _do_late(self, commit: Commit) -> None:
        with self._lock:
            self._try(commit)

    def _unknown(self) -> Failed:
        self.counts.unknown += 1
        return Failed(1021)

    def _try(self, commit: Commit) -> Stamp | Failed:
        try:
            return self._commit(commit)
        except Failed as failed:
            return failed

    def _commit(self, commit: Commit) -> Stamp:
        if commit.version is not None and commit.reads:
            self._check(commit.version)
            if self._failing.get(commit.version, (0, 0))[1] == 1007:
                self._fail(commit.version, 1007)
            for version, written in reversed(self._log):
                if version <= commit.version:
                    break
                if overlap(commit.reads, written):
                    self.counts.conflicts += 1
                    raise Failed(1020)
        stamp = self._next_stamp()
        mutations = [_final(mutation, bytes(stamp)) for mutation in commit.mutations]
        stamped_keys = [
            point(final[1])
            for final, (op, _, _) in zip(mutations, commit.mutations, strict=True)
            if op is Op.STAMPED_KEY
        ]
        keys = self._apply(mutations, stamp.version)
        self._log.append((stamp.version, commit.writes + stamped_keys))
        self.counts.commits += 1
        self._forget_old(stamp.version - WINDOW)
        self._look_at(keys)
        return stamp

    def _next_stamp(self) -> Stamp:
        if not self._is_seen and self.rng.random() < self.faults.joined:
            self._last = Stamp(self._last.version, self._last.order + 1)
        else:
            self._last = Stamp(max(self._last.version + 1, self._now()), 0)
        self._is_seen = False
        return self._last

    def _apply(self, mutations: Iterable[Mutation], version: int) -> list[bytes]:
        """Do them in their order, and return the keys that were written."""
        keys = []
        for op, key, operand in mutations:
            if op is Op.CLEAR_RANGE:
                for one in self._span(key, operand):
                    self._set(one, None, version)
                    keys.append(one)
            else:
                self._set(key, applied(op, self._value(key, version), operand), version)
                keys.append(key)
        return keys

    def _set(self, key: bytes, value: bytes | None, version: int) -> None:
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = []
            insort(self._keys, key)
        if chain and chain[-1][0] == version:
            chain[-1] = (version, value)
        else:
            chain.append((version, value))
        self._written.append((version, key))

    def _forget_old(self, oldest: int) -> None:
        """Forget what no transaction can read any more."""
        while self._log and self._log[0][0] < oldest:
            self._log.popleft()
        while self._failing and (version := next(iter(self._failing))) < oldest:
            del self._failing[version]
        while self._written and self._written[0][0] < oldest:
            key = self._written.popleft()[1]
            chain = self._chains.get(key)
            if chain is None:
                continue
            del chain[: max(bisect_right(chain, oldest, key=lambda one: one[0]) - 1, 0)]
            if len(chain) == 1 and chain[0][1] is None and chain[0][0] < oldest:
                del self._chains[key]
                del self._keys[bisect_left(self._keys, key)]

    def _look_at(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            for watch in self._watches.get(key, ()):
                self.driver.post(lambda watch=watch: self._look(watch))

    def _look(self, watch: Watch) -> None:
        with self._lock:
            if self._value(watch.key, self._last.version) != watch.value:
                self.counts.fired += 1
                self._end(watch, 0)

    def _end(self, watch: Watch, error: int) -> None:
        if not watch.is_over:
            watch.is_over = True
            self._forget(watch)
            self.driver.post(lambda: watch.fire(error))

    def _forget(self, watch: Watch) -> None:
        some = self._watches.get(watch.key, [])
        if watch in some:
            some.remove(watch)
        if not some:
            self._watches.pop(watch.key, None)


def _final(mutation: Mutation, stamp: bytes) -> Mutation:
    """A mutation when its stamp is known."""
    op, key, operand = mutation
    if op is Op.STAMPED_KEY:
        return Op.SET, stamped(key, stamp), operand
    if op is Op.STAMPED_VALUE:
        return Op.SET, key, stamped(operand, stamp)
    return mutation
