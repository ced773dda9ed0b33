"""A transaction in the client: what it wrote, what it read, and what it sends to be committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from simulated_fdb.cluster import Commit, Driver, Mutation, Range, Reply, Stamp, overlap, point
from simulated_fdb.errors import RETRYABLE, Failed, Unreachable
from simulated_fdb.futures import Future
from simulated_fdb.mutations import MOST_VALUE, STAMP, Op, applied, offset, stamped

MOST_KEY = 10_000
MOST_SIZE = 10_000_000
#: Seconds.
FIRST_DELAY, MOST_DELAY = 0.01, 1.0


class Served(Protocol):
    """A cluster, as a client reaches it."""

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


class Transaction:
    """One thread uses it at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cluster, self._driver = database.cluster, database.cluster.driver
        self._watches: list[tuple[Future, bytes, bytes | None]] = []
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
        for future, _, _ in self._watches:
            future.complete(error=1025)
        self._watches = []
        self._version: int | None = None
        self._reads: list[Range] = []
        self._writes: list[Range] = []
        self._mutations: list[Mutation] = []
        #: By key what was done to it; what is not there may be in a range that was cleared.
        self._overlay: dict[bytes, list[tuple[Op, bytes]]] = {}
        self._cleared: list[Range] = []
        self._unreadable: list[Range] = []
        self._deferred = 0  # the error of a write, which the next call has
        self._is_sent = self._is_cancelled = False
        self.stamp: Stamp | None = None
        self.stamped = self._future()
        self.size = 0

    def set_option(self, code: int, number: int) -> None:
        if code == 500:
            self._timeout = 1000 * number or None
        elif code == 501:
            self._retries = None if number < 0 else number
        elif code == 502:
            self._most_delay = number / 1000
        elif code == 503:
            self._most_size = number
        elif code not in (600,):  # what is the default
            raise NotImplementedError(f"the option {code}")

    def get_read_version(self) -> Future:
        return self._reading(self._read_version)

    def get_approximate_size(self) -> Future:
        return self._reading(lambda: self.size)

    def get(self, key: bytes, snapshot: bool = False) -> Future:
        return self._reading(lambda: self._get(key, snapshot))

    def get_range(
        self, begin: bytes, end: bytes, limit: int, most_bytes: int, reverse: bool, snapshot: bool
    ) -> Future:
        """The keys, and whether there may be more: it ends with so many keys or bytes; 0 is no
        bound."""
        return self._reading(
            lambda: self._get_range(begin, end, limit, most_bytes, reverse, snapshot)
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
        self._read(read, future)
        if not future.is_ready:
            self._limit_time(future)
        return future

    def _read(self, read: Callable[[], Any], future: Future) -> None:
        try:
            self._check()
            future.complete(read())
        except Failed as error:
            future.complete(error=error.code)
        except Unreachable:
            self._cluster.when_reachable(lambda: self._read(read, future))

    def _check(self) -> None:
        """Raise what the next call has to raise."""
        if self._is_cancelled:
            raise Failed(1025)
        if self._is_over():
            raise Failed(1031)
        if self._is_sent:
            raise Failed(2017)
        if self._deferred:
            raise Failed(self._deferred)

    def _is_over(self) -> bool:
        return self._timeout is not None and self._driver.clock() > self._began + self._timeout

    def _read_version(self) -> int:
        if self._version is None:
            self._driver.step()
            self._version = self._cluster.read_version()
        return self._version

    def _get(self, key: bytes, snapshot: bool) -> bytes | None:
        if overlap([point(key)], self._unreadable):
            raise Failed(1036)
        if self._is_known(key):
            return self._with_writes(key, None)
        version = self._read_version()
        self._driver.step()
        value = self._cluster.get(key, version)
        if not snapshot:
            self._note_read(point(key))
        return self._with_writes(key, value)

    def _is_known(self, key: bytes) -> bool:
        """Whether its value depends only on what this transaction wrote."""
        done = self._overlay.get(key)
        return bool(done and done[0][0] is Op.SET) or overlap([point(key)], self._cleared)

    def _with_writes(self, key: bytes, value: bytes | None) -> bytes | None:
        if overlap([point(key)], self._cleared):
            value = None
        for op, operand in self._overlay.get(key, ()):
            value = applied(op, value, operand)
        return value

    def _get_range(
        self, begin: bytes, end: bytes, limit: int, most_bytes: int, reverse: bool, snapshot: bool
    ) -> tuple[list[tuple[bytes, bytes]], bool]:
        if begin > end:
            raise Failed(2005)
        found, size, more = [], 0, False
        for key, value in self._merged(begin, end, limit, reverse):
            found.append((key, value))
            size += len(key) + len(value)
            if len(found) == limit or 0 < most_bytes <= size:
                more = True
                break
        if more:  # no more of the range counts as read
            last = found[-1][0]
            begin, end = (last, end) if reverse else (begin, last + b"\0")
        if overlap([(begin, end)], self._unreadable):
            raise Failed(1036)
        if not snapshot:
            for one in self._unwritten((begin, end)):
                self._note_read(one)
        return found, more

    def _merged(
        self, begin: bytes, end: bytes, limit: int, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """What is in the cluster, with what this transaction wrote."""
        version = self._read_version()
        while True:
            self._driver.step()
            page = self._cluster.get_range(begin, end, limit, reverse, version)
            is_last = not limit or len(page) < limit
            beyond = b"" if is_last else page[-1][0]
            if is_last:
                here = (begin, end)
            else:
                here = (beyond, end) if reverse else (begin, beyond + b"\0")
            values: dict[bytes, bytes | None] = dict(page)
            for key in self._overlay:
                if here[0] <= key < here[1]:
                    values.setdefault(key, None)
            for key in sorted(values, reverse=reverse):
                value = self._with_writes(key, values[key])
                if value is not None:
                    yield key, value
            if is_last:
                return
            begin, end = (begin, beyond) if reverse else (beyond + b"\0", end)

    def _unwritten(self, one: Range) -> list[Range]:
        """The parts of a range that do not depend only on what this transaction wrote."""
        known = [point(key) for key, done in self._overlay.items() if done[0][0] is Op.SET]
        left = [one]
        for begin, end in known + self._cleared:
            left = [
                part
                for its_begin, its_end in left
                for part in ((its_begin, min(begin, its_end)), (max(end, its_begin), its_end))
                if part[0] < part[1]
            ]
        return left

    def _note_read(self, one: Range) -> None:
        self._reads.append(one)
        self.size += len(one[0]) + len(one[1])

    def _note_write(self, one: Range) -> None:
        self._writes.append(one)
        self.size += len(one[0]) + len(one[1])

    def mutate(self, op: Op, key: bytes, operand: bytes) -> None:
        """Set a key, or change it in another way; an error is the next call's."""
        try:
            self._check()
            self._check_size(op, key, operand)
            if op is Op.STAMPED_KEY:
                self._unreadable.append(self._possible(key))
            else:
                if op is Op.STAMPED_VALUE:
                    offset(operand)
                    self._unreadable.append(point(key))
                self._note_write(point(key))
                done = self._overlay.setdefault(key, [])
                if op is Op.SET:
                    done.clear()
                done.append((op, operand))
        except Failed as error:
            self._deferred = self._deferred or error.code
            return
        self._mutations.append((op, key, operand))
        self.size += len(key) + len(operand)

    def _check_size(self, op: Op, key: bytes, operand: bytes) -> None:
        if len(key) > MOST_KEY + (4 if op is Op.STAMPED_KEY else 0):
            raise Failed(2102)
        if len(operand) > MOST_VALUE + (4 if op is Op.STAMPED_VALUE else 0):
            raise Failed(2103)
        if key >= b"\xff":
            raise Failed(2004)

    def _possible(self, key: bytes) -> Range:
        """From the lowest key to the highest that a key with a stamp can become."""
        lowest = (self._version or 0).to_bytes(8, "big") + b"\0\0"
        return stamped(key, lowest), stamped(key, b"\xff" * STAMP) + b"\0"

    def clear_range(self, begin: bytes, end: bytes) -> None:
        try:
            self._check()
            if begin > end:
                raise Failed(2005)
            if max(len(begin), len(end) - 1) > MOST_KEY:
                raise Failed(2102)
            if end > b"\xff":
                raise Failed(2004)
        except Failed as error:
            self._deferred = self._deferred or error.code
            return
        if begin == end:
            return
        self._note_write((begin, end))
        for key in [key for key in self._overlay if begin <= key < end]:
            del self._overlay[key]
        self._cleared.append((begin, end))
        self._mutations.append((Op.CLEAR_RANGE, begin, end))
        self.size += len(begin) + len(end)

    def add_conflict(self, begin: bytes, end: bytes, write: bool) -> None:
        self._check()
        if begin > end:
            raise Failed(2005)
        (self._note_write if write else self._note_read)((begin, end))

    def watch(self, key: bytes) -> Future:
        """A future that is ready after the commit, when the key has another value than now. The
        key counts as read."""
        looked = self.get(key)
        self._driver.wait(lambda: looked.is_ready)
        future, watching = self._future(), self._database.watching
        try:
            value = looked.check()
            if len(watching) >= self._database.most_watches:
                raise Failed(1032)
            watching.add(future)
            future.on_ready(lambda: watching.discard(future))
            self._watches.append((future, key, value))
        except Failed as error:
            future.complete(error=error.code)
        return future

    def commit(self) -> Future:
        try:
            self._check()
            if self.size > self._most_size:
                raise Failed(2101)
        except Failed as error:
            return self.failed(error.code)
        self._is_sent = True
        future = self._future()
        if not self._mutations and not self._writes:
            self._start_watches(self._watches)
            self._watches = []
            self.stamped.complete(error=2021)
            future.complete()
            return future
        stamp_future, watches, self._watches = self.stamped, self._watches, []

        def reply(outcome: Stamp | Failed) -> None:
            if isinstance(outcome, Failed):
                for watch, _, _ in watches:
                    watch.complete(error=outcome.code)
                stamp_future.complete(error=outcome.code)
                future.complete(error=outcome.code)
                return
            if stamp_future is self.stamped:  # it was not reset meanwhile
                self.stamp = outcome
            self._start_watches(watches)
            stamp_future.complete(bytes(outcome))
            future.complete()

        self._driver.step()
        self._cluster.send(Commit(self._version, self._reads, self._writes, self._mutations), reply)
        self._limit_time(future)
        return future

    def _limit_time(self, future: Future) -> None:
        if self._timeout is not None:
            left = self._began + self._timeout - self._driver.clock()
            self._driver.after(left / 1_000_000, lambda: future.complete(error=1031))

    def _start_watches(self, watches: list[tuple[Future, bytes, bytes | None]]) -> None:
        for future, key, value in watches:
            self._start_watch(future, key, value)

    def _start_watch(self, future: Future, key: bytes, value: bytes | None) -> None:
        watch = self._cluster.watch(key, value, lambda error: future.complete(error=error))
        future.on_cancel = lambda: self._cluster.unwatch(watch)

    def on_error(self, code: int) -> Future:
        """Begin again after a while; other errors than those after which this helps are the
        future's."""
        if self._is_cancelled:
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

        self._driver.after(min(delay, self._most_delay), go_on)
        return future

    def cancel(self) -> None:
        """All calls raise until it is reset; a commit that is in flight may be done."""
        self._is_cancelled = True
        for future, _, _ in self._watches:
            future.complete(error=1025)
