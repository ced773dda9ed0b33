"""The calls that a worker has: one; or several, while they are short and more wait."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import Any

from ..exceptions import Empty, PressureError, QueueDoesNotExistError, TaskError
from ..sync.tasks.outages import PASSING, PAUSE
from ..sync.tasks.pool_calls import not_acknowledged
from ..sync.tasks.task import Task
from .call_queue import CallQueue
from .calls import Outcome

Call = Task[bytes]

#: How many calls are taken at once at most; and for how many seconds at most, if each takes as long
#: as the longest of those before.
_MOST, _SPAN = 16, 0.004
#: So many seconds after several calls were taken, those that have not begun are given back, and
#: what came of those that have ended is told.
_PATIENCE = 0.005

_log = logging.getLogger("pressure_mp")


class TakenCalls:
    """The calls that one worker has. One thread takes and runs them; while there are several,
    another thread keeps a long one from delaying the rest."""

    def __init__(self, queue: CallQueue, tube: str | None, worker: int) -> None:
        """``worker`` is the worker's number in its process."""
        self._queue = queue
        self._tube, self._worker = tube, worker
        self._lock = threading.Lock()
        self._unbegun: deque[Call] = deque()
        self._done: list[Call] = []
        #: When the call that runs began; None while none does.
        self._began: float | None = None
        self._longest = 0.0
        #: When several were taken last.
        self._taken = 0.0
        #: How many were taken at once, and whether more waited behind them.
        self._number, self._is_behind = 1, False
        #: Held by the helping thread while it calls the broker.
        self._helping = threading.Lock()
        self._has_several = threading.Event()
        self._helper: threading.Thread | None = None

    # The thread that takes calls and runs them

    def take(self, most: int | None) -> None:
        """Acknowledge the last calls, and take the next, ``most`` at most; waits for one.

        The take of the next call acknowledges one call, with its outcome: one round trip. Several
        are acknowledged together. Raises what a take does; a call that is not yet acknowledged is
        kept.
        """
        with self._helping:
            if self._unbegun:  # they could not be given back
                return
        number = self._next_number(most)
        self._longest = 0.0
        if number > 1 or len(self._done) > 1:
            self._tell()
        if number == 1 or not self._take_several(number):
            self._take_one()

    def _next_number(self, most: int | None) -> int:
        """Return how many calls to take: twice as many each time, while more wait behind them."""
        if not self._is_behind or not self._queue.may_have_several:
            return 1
        fits = int(_SPAN / self._longest) if self._longest else _MOST
        return max(1, min(2 * self._number, fits, _MOST if most is None else most))

    def _take_several(self, number: int) -> bool:
        """Take the next calls that are ready; return whether there were any."""
        try:
            found = self._queue.take_several(number, self._tube, self._worker)
        except Empty:
            found = []
        self._number, self._is_behind = number, len(found) == number
        with self._lock:
            self._unbegun.extend(found)
            self._taken = time.monotonic()
        if len(found) > 1:
            self._have_help()
        return bool(found)

    def _take_one(self) -> None:
        done, self._number, self._is_behind = None, 1, False
        if self._done:
            (done,) = self._done
        try:
            task = self._queue.take_one(done, self._tube, self._worker)
        except TaskError as error:
            self._done.clear()
            _say_late(error, 1)
            return
        except BaseException:
            self._done = not_acknowledged(self._done)
            raise
        self._done.clear()
        self._unbegun.append(task)
        # It was there before the other was acknowledged: more may be than workers wait for.
        self._is_behind = done is not None and task.record.created < done.record.since

    def begin(self) -> Call | None:
        with self._lock:
            if not self._unbegun:
                return None
            self._began = time.monotonic()
            return self._unbegun.popleft()

    def end(self, call: Call, outcome: Outcome) -> None:
        call.result = outcome
        with self._lock:
            assert self._began is not None, "it has begun"
            self._longest = max(self._longest, time.monotonic() - self._began)
            self._began = None
            self._done.append(call)

    def set_aside(self, task: Task[Any]) -> None:
        """Bury a task that is no call: a program put it with a ``TaskQueue``."""
        with self._lock:
            self._began = None
        _log.error("a call of executor %r was buried", self._queue.name)
        try:
            task.bury(error=f"no call of an executor, but {type(task.data).__name__}")
        except (TaskError, QueueDoesNotExistError):
            pass  # it was removed
        except PASSING as error:  # done when this process has ended
            _log.warning("calls of %r are not given back: %s", self._queue.name, error)

    @property
    def has_others(self) -> bool:
        return bool(self._unbegun)

    def give_back(self) -> None:
        """Give the calls that have not begun to other workers."""
        with self._helping, self._lock:
            unbegun, self._unbegun = self._unbegun, deque()
        try:
            self._release(unbegun)
        except PASSING as error:  # done when this process has ended
            _log.warning("calls of %r are not given back: %s", self._queue.name, error)

    def finish(self) -> None:
        """Acknowledge the last calls."""
        with self._helping:
            self._tell()

    # Either thread

    def _tell(self) -> None:
        """Acknowledge calls, with their outcomes. If that fails, keep them."""
        with self._lock:
            done, self._done = self._done, []
        try:
            self._queue.ack_many(done)
        except TaskError as error:
            _say_late(error, len(error.rest))
        except BaseException:
            with self._lock:
                self._done += not_acknowledged(done)
            raise

    def _release(self, calls: deque[Call]) -> None:
        """Give calls to other workers. If the broker is silent, the rest stays in ``calls``."""
        while calls:
            try:
                self._queue.release_unbegun(calls[0])
            except TaskError:
                pass  # it was removed, or is given to another already
            except QueueDoesNotExistError:
                calls.clear()
                return
            calls.popleft()

    # The thread that helps

    def _have_help(self) -> None:
        if self._helper is None:
            self._helper = threading.Thread(
                target=self._help, name="pressure_mp taken calls", daemon=True
            )
            self._helper.start()
        self._has_several.set()

    def _help(self) -> None:
        while True:
            self._has_several.wait()
            time.sleep(_PATIENCE)
            try:
                with self._helping:
                    self._relieve()
            except QueueDoesNotExistError:
                time.sleep(PAUSE)  # the thread that takes hears of that too
            except PressureError as error:
                _log.warning("calls of %r are not given back: %s", self._queue.name, error)
                time.sleep(PAUSE)

    def _relieve(self) -> None:
        """Release and acknowledge calls without waiting for the end of a long one."""
        with self._lock:
            if not self._unbegun and (self._began is None or not self._done):
                self._has_several.clear()
                return
            if time.monotonic() - self._taken < _PATIENCE:
                return
            unbegun, self._unbegun = self._unbegun, deque()
        try:
            self._release(unbegun)
        finally:
            with self._lock:
                self._unbegun.extend(unbegun)
        self._tell()


def _say_late(error: TaskError, number: int) -> None:
    _log.warning(
        "%d calls were acknowledged too late, and may run again; the first: %s", number, error
    )
