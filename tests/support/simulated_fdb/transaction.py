"""A transaction in the client: what it read, and what it sends to be committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from simulated_fdb.cluster import Commit, Reply, Stamp
from simulated_fdb.drivers import Driver
from simulated_fdb.errors import RETRYABLE, Failed, Unreachable
from simulated_fdb.futures import Future
from simulated_fdb.mutations import Op
from simulated_fdb.ranges import Range, point
from simulated_fdb.writes import Writes

MOST_SIZE = 10_000_000
#: Seconds.
FIRST_DELAY, MOST_DELAY = 0.01, 1.0


class Served(Protocol):
    """A cluster, as a client reaches it. Reads raise Unreachable if there is no answer now."""

    driver: Driver

    def read_version(self) -> int: ...

    def get(self, key: bytes, version: int) -> bytes | None: ...

    def get_range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool, version: int
    ) -> list[tuple[bytes, bytes]]: ...

    def send(self, commit: Commit, reply: Reply) -> None: ...

    def watch(self, key: bytes, value: bytes | None, fire: Callable[[int], None]) -> Any: ...

    def unwatch(self, watch: Any) -> None: ...

    def when_reachable(self, job: Callable[[], None]) -> None: ...


class Database:
    """A client of a cluster."""

    def __init__(self, cluster: Served) -> None:
        self.cluster = cluster
        self.most_watches = 10_000
        self.watching: set[Future] = set()


class _Watch(NamedTuple):
    """A watch that is not set before the commit."""

    future: Future
    key: bytes
    value: bytes | None


class _Try:
    """What a transaction did since it began, or began again."""

    def __init__(self, stamp: Future) -> None:
        self.version: int | None = None
        self.reads: list[Range] = []
        self.conflicts: list[Range] = []  # with the reads of others
        self.writes = Writes()
        self.watches: list[_Watch] = []
        #: Reads that are to be done before the commit.
        self.pending: list[Future] = []
        self.deferred = 0  # the error of a write, which the next call has
        self.committing: Future | None = None
        self.is_cancelled = False
        self.stamp: Stamp | None = None
        self.stamped = stamp
        self.size = 0

    def note(self, ranges: list[Range], one: Range) -> None:
        ranges.append(one)
        self.size += len(one[0]) + len(one[1])

    def end(self, error: int) -> None:
        for watch in self.watches:
            watch.future.complete(error=error)
        self.stamped.complete(error=error)


class Transaction:
    """One thread uses it at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cluster, self._driver = database.cluster, database.cluster.driver
        self._now = _Try(self._future())
        self.reset()

    def reset(self) -> None:
        """Forget everything, also options."""
        self._timeout: int | None = None  # microseconds
        self._retries: int | None = None
        self._most_delay, self._most_size = MOST_DELAY, MOST_SIZE
        self._began = self._driver.clock()
        self._delay = FIRST_DELAY
        self._begin()

    def _begin(self) -> None:
        if self._now.committing is None:
            self._now.end(1025)
        self._now = _Try(self._future())

    def set_option(self, code: int, number: int) -> None:
        if code == 500:
            self._timeout = 1000 * number or None
        elif code == 501:
            self._retries = None if number < 0 else number
        elif code == 502:
            self._most_delay = number / 1000
        elif code == 503:
            self._most_size = number
        else:
            raise NotImplementedError(f"the option {code}")

    @property
    def version(self) -> int:
        """That of its commit, or -1."""
        return self._now.stamp.version if self._now.stamp is not None else -1

    @property
    def stamped(self) -> Future:
        return self._now.stamped

    def get_read_version(self) -> Future:
        return self._reading(lambda: self._read_version(self._now))

    def get_approximate_size(self) -> Future:
        return self._reading(lambda: self._now.size)

    def get(self, key: bytes, snapshot: bool = False) -> Future:
        now = self._now
        return self._reading(lambda: self._get(now, key, snapshot))

    def get_range(
        self, begin: bytes, end: bytes, limit: int, most_bytes: int, reverse: bool, snapshot: bool
    ) -> Future:
        """The keys, and whether there may be more: it ends with so many keys or bytes; 0 is no
        bound."""
        if begin > end:
            return self.failed(2005)
        now = self._now
        return self._reading(
            lambda: self._get_range(now, (begin, end), limit, most_bytes, reverse, snapshot)
        )

    def _future(self) -> Future:
        return Future(self._driver)

    def failed(self, code: int) -> Future:
        """A future that has this error."""
        future = self._future()
        future.complete(error=code)
        return future

    def _reading(self, read: Callable[[], Any]) -> Future:
        future = self._future()
        try:
            self._check()
        except Failed as error:
            future.complete(error=error.code)
            return future
        self._read(read, future)
        if not future.is_ready:
            self._now.pending.append(future)
            self._limit_time(future)
        return future

    def _read(self, read: Callable[[], Any], future: Future) -> None:
        try:
            future.complete(read())
        except Failed as error:
            future.complete(error=error.code)
        except Unreachable:
            self._cluster.when_reachable(lambda: self._read(read, future))

    def _limit_time(self, future: Future) -> None:
        if self._timeout is not None:
            left = self._began + self._timeout - self._driver.clock()
            self._driver.after(left / 1_000_000, lambda: future.complete(error=1031))

    def _check(self) -> None:
        """Raise what the next call has to raise."""
        if self._now.is_cancelled:
            raise Failed(1025)
        if self._is_over():
            raise Failed(1031)
        if self._now.committing is not None:
            self._now.committing.complete(error=2017)  # it may be done all the same
            raise Failed(2017)
        if self._now.deferred:
            raise Failed(self._now.deferred)

    def _is_over(self) -> bool:
        return self._timeout is not None and self._driver.clock() > self._began + self._timeout

    def _read_version(self, now: _Try) -> int:
        if now.version is None:
            self._driver.step()
            now.version = self._cluster.read_version()
        return now.version

    def _get(self, now: _Try, key: bytes, snapshot: bool) -> bytes | None:
        now.writes.check(*point(key))
        if now.writes.decide(key):
            return now.writes.applied(key, None)
        version = self._read_version(now)
        self._driver.step()
        value = self._cluster.get(key, version)
        if not snapshot:
            now.note(now.reads, point(key))
        return now.writes.applied(key, value)

    def _get_range(
        self, now: _Try, read: Range, limit: int, most_bytes: int, reverse: bool, snapshot: bool
    ) -> tuple[list[tuple[bytes, bytes]], bool]:
        found, size, more = [], 0, False
        for key, value in self._merged(now, read, limit, reverse):
            found.append((key, value))
            size += len(key) + len(value)
            if len(found) == limit or 0 < most_bytes <= size:
                more = True
                break
        if more:  # no more of the range counts as read
            last = found[-1][0]
            read = (last, read[1]) if reverse else (read[0], last + b"\0")
        now.writes.check(*read)
        if not snapshot:
            for one in now.writes.undecided(read):
                now.note(now.reads, one)
        return found, more

    def _merged(
        self, now: _Try, read: Range, limit: int, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """The cluster's contents, with the writes of this transaction."""
        version = self._read_version(now)
        begin, end = read
        while True:
            self._driver.step()
            page = self._cluster.get_range(begin, end, limit, reverse, version)
            is_last = not limit or len(page) < limit
            beyond = b"" if is_last else page[-1][0]
            here = (beyond, end) if reverse else (begin, beyond + b"\0")
            values: dict[bytes, bytes | None] = dict(page)
            for key in now.writes.keys(*((begin, end) if is_last else here)):
                values.setdefault(key, None)
            for key in sorted(values, reverse=reverse):
                value = now.writes.applied(key, values[key])
                if value is not None:
                    yield key, value
            if is_last:
                return
            begin, end = (begin, beyond) if reverse else (beyond + b"\0", end)

    def mutate(self, op: Op, key: bytes, operand: bytes) -> None:
        """Set a key, or change it in another way; an error is the next call's."""
        self._write(lambda now: now.writes.mutate(op, key, operand, now.version))
        self._now.size += len(key) + len(operand)

    def clear_range(self, begin: bytes, end: bytes) -> None:
        self._write(lambda now: now.writes.clear(begin, end))
        self._now.size += len(begin) + len(end)

    def _write(self, write: Callable[[_Try], Range | None]) -> None:
        now = self._now
        try:
            self._check()
            written = write(now)
        except Failed as error:
            now.deferred = now.deferred or error.code
        else:
            if written is not None:
                now.note(now.conflicts, written)

    def add_conflict(self, begin: bytes, end: bytes, write: bool) -> None:
        if begin > end:
            raise Failed(2005)
        if write:
            self._write(lambda now: (begin, end))
        else:
            self._write(lambda now: now.note(now.reads, (begin, end)))

    def watch(self, key: bytes) -> Future:
        """A future that is ready after the commit, when the key has another value than now. The
        key counts as read."""
        now, future, watching = self._now, self._future(), self._database.watching
        looked = self.get(key)

        def note() -> None:
            try:
                now.watches.append(_Watch(future, key, looked.check()))
            except Failed as error:
                future.complete(error=error.code)

        if len(watching) >= self._database.most_watches:
            return self.failed(1032)
        watching.add(future)
        future.on_ready(lambda: watching.discard(future))
        if looked.is_ready:
            note()
        else:
            looked.on_ready(note)
        return future

    def commit(self) -> Future:
        now = self._now
        try:
            self._check()
            if now.size > self._most_size:
                raise Failed(2101)
        except Failed as error:
            return self.failed(error.code)
        now.committing = future = self._future()
        self._when_read(now, lambda: self._send(now, future))
        if not future.is_ready:
            self._limit_time(future)
        return future

    def _when_read(self, now: _Try, job: Callable[[], None]) -> None:
        unread = next((one for one in now.pending if not one.is_ready), None)
        if unread is None:
            job()
        else:
            unread.on_ready(lambda: self._when_read(now, job))

    def _send(self, now: _Try, future: Future) -> None:
        if not now.writes.mutations and not now.conflicts:
            self._start(now.watches)
            now.stamped.complete(error=2021)
            future.complete()
            return

        def reply(outcome: Stamp | Failed) -> None:
            if isinstance(outcome, Failed):
                now.end(outcome.code)
                future.complete(error=outcome.code)
                return
            now.stamp = outcome
            self._start(now.watches)
            now.stamped.complete(bytes(outcome))
            future.complete()

        self._driver.step()
        self._cluster.send(
            Commit(now.version, now.reads, now.conflicts, now.writes.mutations), reply
        )

    def _start(self, watches: list[_Watch]) -> None:
        for watch in watches:
            self._start_one(watch)

    def _start_one(self, watch: _Watch) -> None:
        future = watch.future
        if not future.is_ready:
            set_there = self._cluster.watch(
                watch.key, watch.value, lambda error: future.complete(error=error)
            )
            future.on_cancel = lambda: self._cluster.unwatch(set_there)

    def on_error(self, code: int) -> Future:
        """Begin again after a while; errors after which this does not help are the
        future's."""
        if self._now.is_cancelled:
            return self.failed(1025)
        if self._is_over():
            return self.failed(1031)
        if code not in RETRYABLE or self._retries == 0:
            return self.failed(code)
        if self._retries is not None:
            self._retries -= 1
        delay, self._delay = self._delay, min(2 * self._delay, self._most_delay)
        future = self._future()

        def go_on() -> None:
            self._begin()
            future.complete()

        self._driver.after(min(delay, self._most_delay) * self._driver.fraction(), go_on)
        return future

    def cancel(self) -> None:
        """All calls raise until it is reset; a commit that is in flight may be done."""
        self._now.is_cancelled = True
        if self._now.committing is None:
            self._now.end(1025)
