"""The calls of one executor that are submitted and not done, and the threads that send them and
read the notices of them.

A future is in the table from before its call is sent until the call's outcome is known. The thread
that takes it out of the table resolves it, once.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ..drivers import waits_end_when
from ..encoding.user_exceptions import in_words
from ..engines.contract.task_results import TAKEN
from ..exceptions import Full, InboxLost, PressureError, QueueDoesNotExistError
from ..operations.task_results import TaskEvent
from ..sync.handles import attachment_of
from ..sync.tasks.inbox import TaskInbox
from ..sync.tasks.outages import PASSING, PAUSE, Outages
from ..sync.tasks.producer import put_options
from . import calls
from .call_queue import CallQueue, Options
from .errors import CallAborted, CallDropped, ExecutorBroken, ExecutorShutDown, WorkerLost
from .future import Future
from .ids import CallIds

#: How many calls are sent at once.
_MOST_AT_ONCE = 1000
#: While more than _MANY calls are not done, the thread that listens waits before it asks for the
#: next notices, so many seconds for each call, up to a limit: to read several at a time takes much
#: less processor time of all processes. The fewer calls there are the shorter it waits, so that
#: they are not all done meanwhile.
_MANY, _PAUSE_FOR_EACH, _LONGEST_PAUSE = 50, 0.00004, 0.005

#: Why a callback of a future may not wait.
_NO_WAIT = (
    "; this is the thread of the executor in which callbacks of futures run, and which reads the "
    "notices of calls: submit in another thread"
)

_log = logging.getLogger("pressure_mp")


class Call(NamedTuple):
    """A call to be sent."""

    payload: bytes
    options: Options


class Client:
    """Sends calls and resolves their futures; threads may share it. ``tell`` is called when it is
    over."""

    _inbox: TaskInbox

    def __init__(
        self,
        queue: CallQueue,
        result_ttl: float | None,
        max_pending: int | None,
        sends_later: bool,
    ) -> None:
        """``result_ttl`` is in seconds; with None, results are for this client alone."""
        self._queue = queue
        self._result_ttl = result_ttl
        self._most = max_pending
        self._sends_later = sends_later
        self._make_lock()
        self._cancelling = threading.RLock()
        self._ending = threading.Lock()
        self._ids = CallIds()
        self._futures: dict[str, Future[Any]] = {}
        self._queued: set[str] = set()  # that no worker has taken
        self._unsent: dict[str, Call] = {}
        self._on_the_way: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._is_ended = False
        #: Whether this process was forked, and the calls are its parent's.
        self.is_left = False
        self._closed: str | None = None
        #: The reason why no call can be done any more.
        self.broken: str | None = None
        self.tell: Callable[[], None] = _tell_no_listener
        #: Called, under the lock, when there may be space; for callers that do not wait in a
        #: thread.
        self.tell_fewer: Callable[[], None] = _tell_no_listener

    def _make_lock(self) -> None:
        # Re-entrant: a finalizer may close it in the midst of anything.
        self._lock = threading.RLock()
        self._fewer = threading.Condition(self._lock)  # fewer futures, or fewer queued calls
        self._sendable = threading.Condition(self._lock)
        self._sent = threading.Condition(self._lock)

    # What the executor does

    @property
    def pending(self) -> int:
        """Return how many futures are not done."""
        return len(self._futures)

    @property
    def is_over(self) -> bool:
        """Tell whether no call is left to wait for, and none can come."""
        return self._closed is not None and not self._futures

    def start(self) -> None:
        """Start the threads that listen and send."""
        with self._lock:
            if self._threads:
                return
            self._inbox = self._queue.inbox(takes=self._most is not None)
            wanted = [self._listen, self._send] if self._sends_later else [self._listen]
            name = f"{self._queue.name} executor"
            self._threads = [
                threading.Thread(target=self._run, args=(one,), name=name, daemon=True)
                for one in wanted
            ]
            for thread in self._threads:
                thread.start()

    def submit(
        self, payload: bytes, options: Options, block: bool, id: str | None = None
    ) -> Future[Any]:
        """Send a call, at once or in the background. Raises Full, ExecutorBroken,
        ExecutorShutDown; and, where none is sent in the background, what a put raises.

        One that is alone is sent at once: the thread that sends would only be on its way.
        """
        with self._lock:
            self._wait_for_space(block)
            future: Future[Any] = Future(id or self._ids.next(), self)
            is_alone = not self._futures
            self._futures[future.id] = future
            self._queued.add(future.id)
            if self._sends_later and not is_alone:
                self._unsent[future.id] = Call(payload, options)
                self._sendable.notify()
                return future
            self._on_the_way.add(future.id)
        try:
            self._put({future.id: Call(payload, options)})
        except PressureError as error:
            if not self._sends_later:
                self._take_out(future.id)
                raise
            self._fail(future.id, error)
        except BaseException:
            self._take_out(future.id)
            raise
        return future

    def _put(self, batch: dict[str, Call]) -> None:
        """Send calls that are on the way, and have the same options. Raises what a put does."""
        options = next(iter(batch.values())).options
        payloads = [call.payload for call in batch.values()]
        own: dict[str, Any] = {"inbox": self._inbox, "result_ttl": self._result_ttl}
        try:
            self._queue.put_calls(list(batch), payloads, put_options(**options._asdict(), **own))
        finally:
            with self._lock:
                self._on_the_way.difference_update(batch)
                self._sent.notify_all()

    def _wait_for_space(self, block: bool) -> None:
        while True:
            self.check_open()
            if self.has_space:
                return
            is_own = threading.current_thread() in self._threads
            if is_own or not block:
                raise Full(
                    f"executor {self._queue.name!r} has {len(self._queued)} calls that no worker "
                    f"has taken, of max_pending={self._most}{_NO_WAIT if is_own else ''}"
                )
            self._fewer.wait()

    @property
    def has_space(self) -> bool:
        """Tell whether one more call may wait for a worker."""
        return self._most is None or len(self._queued) < self._most

    def _have_fewer(self) -> None:
        self._fewer.notify_all()
        self.tell_fewer()

    def check_open(self) -> None:
        """Raise ExecutorBroken or ExecutorShutDown if no more calls are accepted."""
        if self.broken is not None:
            raise ExecutorBroken(
                f"executor {self._queue.name!r} takes no more calls: {self.broken}"
            )
        if self._closed is not None:
            raise ExecutorShutDown(f"cannot schedule new futures after {self._closed}")

    def failed(self, error: BaseException) -> Future[Any]:
        """Return the future of a call that could not be sent."""
        future: Future[Any] = Future("", self)
        future.set_exception(error)
        return future

    def future_of(self, id: str) -> Future[Any]:
        """Return the future of a call, whichever process submitted it."""
        with self._lock:
            self.check_open()
            found = self._futures.get(id)
            if found is not None:
                return found
            future = self._futures[id] = Future(id, self)
        try:
            self._inbox.watch([id])
        except BaseException:
            self._take_out(id)
            raise
        return future

    def cancel(self, future: Future[Any]) -> bool:
        if self.is_left:
            return False
        with self._cancelling:
            with self._lock:
                is_unsent = self._unsent.pop(future.id, None) is not None
                while future.id in self._on_the_way:
                    self._sent.wait()
            if future.done():
                return future.cancelled()
            future.is_leaving = True
            try:
                if not is_unsent and not self._queue.withdraw(future.id):
                    return False  # a worker has it, or had it: a notice will come
                if self._take_out(future.id) is not None:
                    self._resolve_removed(future)
            finally:
                future.is_leaving = False
            return future.cancelled()

    def is_taken(self, future: Future[Any]) -> bool:
        with self._lock:
            if self.is_over or future.id in self._unsent or future.id in self._on_the_way:
                return False
        return self._queue.is_taken(future.id)

    def _resolve_removed(self, future: Future[Any]) -> None:
        """Resolve the future of a removed call: cancelled, unless a worker had begun."""
        if not future._set_cancelled():
            where = f"call {future.id} of executor {self._queue.name!r}"
            future.set_exception(CallAborted(f"{where} was removed while a worker had it"))

    def cancel_queued(self) -> None:
        """Cancel all calls that no worker has taken."""
        with self._lock:
            there = [self._futures[id] for id in self._queued]
        for future in reversed(there):
            future.cancel()

    def close(self, when: str) -> None:
        """Accept no more calls."""
        with self._lock:
            self._closed = self._closed or when
            self._have_fewer()

    def leave_to_parent(self) -> None:
        """Leave the calls to the parent, as this process was forked: nothing here cancels them.
        Threads that are greenlets run here too, and end."""
        self.is_left = self._is_ended = True
        self._make_lock()  # a thread of the parent may have had the other
        self._closed = "a fork: an executor is for the process that made it"

    def break_off(self, why: str) -> None:
        """Fail all futures, as no worker can do the calls, and withdraw the calls that no worker
        took."""
        with self._lock:
            self.broken = why
            left = list(self._futures)
            self._have_fewer()
        for id in left:
            future = self._take_out(id)
            if future is not None:
                self._break(future, why)

    def _break(self, future: Future[Any], why: str) -> None:
        """Fail one future; an error in that concerns no other future."""
        try:
            try:
                self._withdraw_quietly(future.id)
            finally:
                future.set_exception(ExecutorBroken(f"executor {self._queue.name!r}: {why}"))
        except BaseException:  # such as: its callback exits
            _log.exception("call %s of %r failed, and its callback", future.id, self._queue.name)

    def _withdraw_quietly(self, id: str) -> None:
        with self._lock:
            if self._unsent.pop(id, None) is not None:
                return
        try:
            self._queue.withdraw(id)
        except QueueDoesNotExistError:
            pass
        except PressureError as error:
            _log.warning("call %s of %r could not be withdrawn: %s", id, self._queue.name, error)

    def end(self) -> None:
        """End the threads: nothing is left. A second call, as when the interpreter ends, only waits
        for the first."""
        with self._ending:
            if not self._is_ended:
                self._end()

    def _end(self) -> None:
        with self._lock:
            self._is_ended = True
            self._sendable.notify_all()
        if not self._threads:
            return
        try:
            self._inbox.watch([self._ids.of_none])  # wakes the thread: no such call
            for thread in self._threads:
                thread.join()
            self._inbox.close()
        except PressureError as error:  # its lease ends it
            _log.warning("executor %r could not close its inbox: %s", self._queue.name, error)

    def _take_out(self, id: str) -> Future[Any] | None:
        """Take the future out of the table; the caller resolves it."""
        with self._lock:
            self._queued.discard(id)
            found = self._futures.pop(id, None)
            if self._most is not None:
                self._have_fewer()
        if self.is_over:
            self.tell()
        return found

    def _run(self, work: Callable[[], None]) -> None:
        """Run one of the threads. If it fails, all futures fail, which would wait for it for
        ever."""
        try:
            work()
        except BaseException as error:  # such as: the queue was deleted
            if self.is_left:
                return
            _log.exception("executor %r gets no more notices of its calls", self._queue.name)
            self.break_off(f"it gets no more notices of its calls: {in_words(error)}")

    # The thread that sends

    def _send(self) -> None:
        while True:
            with self._lock:
                while not self._unsent:
                    if self._is_ended:
                        return
                    self._sendable.wait()
                batch = self._next_batch()
                self._on_the_way.update(batch)
            try:
                self._put(batch)
            except PressureError as error:
                for id in batch:
                    self._fail(id, error)

    def _next_batch(self) -> dict[str, Call]:
        """Take the first calls that have the same options."""
        options = next(iter(self._unsent.values())).options
        first = itertools.islice(self._unsent.items(), _MOST_AT_ONCE)
        batch = dict(itertools.takewhile(lambda one: one[1].options == options, first))
        for id in batch:
            del self._unsent[id]
        return batch

    # The thread that listens

    def _listen(self) -> None:
        until_left = waits_end_when(lambda: self.is_left)
        reconnect = attachment_of(self._queue).options.reconnect
        outages = Outages(f"executor {self._queue.name!r}", reconnect=reconnect)
        outages.answered()  # the inbox is open
        is_lost = False  # whether notices are, and the inbox does not watch all calls again yet
        while not self._is_ended:
            tried = time.monotonic()
            try:
                if is_lost:
                    self._watch_again()
                    is_lost = False
                with until_left:
                    heard = deque(self._inbox.take())
                outages.answered()
            except InboxLost:
                is_lost = True
                continue
            except PASSING as error:  # the workers go on, and the notices are kept
                outages.failed(error, tried)
                time.sleep(max(tried + PAUSE - time.monotonic(), 0.0))
                continue
            while heard and not self.is_left:
                self._resolve(heard.popleft())
            pending = len(self._futures)
            if pending > _MANY:
                time.sleep(min(pending * _PAUSE_FOR_EACH, _LONGEST_PAUSE))
            else:
                os.sched_yield()  # a waiter for a result goes on first

    def _watch_again(self) -> None:
        """Have the inbox notified of all calls again: it was gone, as this process did not ask for
        longer than its lease."""
        with self._lock:
            there = [id for id in self._futures if id not in self._unsent]
        self._inbox.watch(there)

    def _resolve(self, heard: TaskEvent) -> None:
        """Resolve a future from a notice of its call."""
        id = str(heard.id)
        if heard.event == TAKEN:
            self._take_note(id)
            return
        future = self._take_out(id)
        if future is None:
            return
        if heard.event == "killed":
            if heard.deliveries and not future.is_leaving:
                future._set_running()
            self._resolve_removed(future)
            return
        try:
            value, error = self._read(id, heard)
        except BaseException as problem:  # the future is no longer in the table
            value, error = None, problem
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def _take_note(self, id: str) -> None:
        with self._lock:
            self._queued.discard(id)
            future = self._futures.get(id)
            if self._most is not None:
                self._have_fewer()
        if future is not None:
            future._set_running()

    def _read(self, id: str, heard: TaskEvent) -> tuple[Any, BaseException | None]:
        """Return the outcome of a call that has ended."""
        result = heard.result
        assert result is not None
        if heard.event == "processed":
            return calls.decode(result.value) if result.error is None else (None, result.error)
        where = f"call {id} of executor {self._queue.name!r}"
        match heard.event:
            case "buried":
                return None, WorkerLost(
                    f"{where} was given to {heard.deliveries} workers, and none finished it: "
                    f"{result.error}"
                )
            case "dropped":
                return None, CallDropped(f"no worker took {where} in time: its ttl is over")
            case _:
                return None, result.error

    def _fail(self, id: str, error: BaseException) -> None:
        future = self._take_out(id)
        if future is not None:
            future.set_exception(error)


def _tell_no_listener() -> None:
    pass
