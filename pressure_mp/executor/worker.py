"""A worker process, whatever it works on; and the worker of an executor, which takes calls, does
them, and reports their outcomes, one after the other."""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import thread
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

from ..authentication import AuthenticationError
from ..background import lease
from ..background.takers import Lost
from ..drivers import waits_end_when
from ..effects import WaitEnded
from ..exceptions import (
    DecodingError,
    PressureError,
    QueueDoesNotExistError,
    ShutDown,
)
from ..identity.processes import incarnation, state
from ..polling import new_poll
from ..sync.handles import attachment_of
from ..sync.tasks.outages import PASSING, PAUSE, Outages
from . import calls
from .call_queue import CallQueue
from .taken_calls import TakenCalls

#: The messages between a worker process and its starter, the process that started it.
READY, FAILED, STOP = "ready", "failed", "stop"

#: The exit codes of a worker process: its call or task was removed; its handler took too long.
REMOVED, LATE = 79, 78

#: Seconds between two checks whether the starter lives.
_INTERVAL = 1.0
#: Seconds from a refusal of the broker to the end of the worker process that it ends.
_PAUSE = 5.0

_log = logging.getLogger("pressure_mp")


class Setup(NamedTuple):
    """The settings of worker processes: how they begin, and when they end."""

    initializer: Callable[..., object] | None = None
    initargs: tuple[Any, ...] = ()
    #: Signals that a worker ignores: the starter gets them, and tells the worker.
    deaf_to: tuple[signal.Signals, ...] = ()
    #: Seconds after which a worker is killed that does not ask whether it is to end; None: never.
    longest_silence: float | None = None
    #: Bytes: a worker that has needed more ends, when it has done what it has in hand.
    max_memory: int | None = None


class Service(Protocol):
    """The work of a worker process. It is pickled on its way there."""

    def prepare(self, is_to_end: Callable[[], bool]) -> None:
        """Make ready to work. Raises the reason why no process can do this work."""

    def serve(self, is_to_end: Callable[[], bool]) -> None:
        """Work until it is to end."""


class Calls(NamedTuple):
    """The calls of an executor, for one worker process."""

    queue: CallQueue
    #: The process ends after so many; with None, after none.
    max_calls: int | None = None
    #: Only calls of this tube; with None, all.
    tube: str | None = None

    def prepare(self, is_to_end: Callable[[], bool]) -> None:
        """The queue is open."""

    def serve(self, is_to_end: Callable[[], bool]) -> None:
        """Do calls until told to end; end this process when it no longer has its call."""
        serve(self.queue, is_to_end, self.max_calls, lambda why: os._exit(REMOVED), self.tube)


class EndCondition:
    """Tells whether this process is to end: it was told so, its starter has ended, or it needs too
    much memory. Each question tells the starter that this process can still ask."""

    def __init__(self, wire: Connection, starter: str, max_memory: int | None, asked: Any) -> None:
        self._starter = starter
        self._asked = asked
        self._max_memory = max_memory
        self._poll = new_poll()
        self._poll.register(wire.fileno(), select.POLLIN)
        self._checked = time.monotonic()
        self._register_starter()

    def _register_starter(self) -> None:
        """Wait for the end of the starter, where the kernel can report it at once."""
        if not hasattr(os, "pidfd_open"):
            return
        parent = multiprocessing.parent_process()
        assert parent is not None, "this is a worker process"
        try:
            self._poll.register(os.pidfd_open(parent.pid or 0), select.POLLIN)
        except OSError:
            self._checked = 0.0  # it is gone, or this kernel is too old: the next check tells

    def __call__(self) -> bool:
        if self._asked is not None:
            self._asked.value = time.monotonic()
        if self._poll.poll(0) or self._needs_too_much():
            return True
        now = time.monotonic()
        if now - self._checked < _INTERVAL:
            return False
        self._checked = now
        return state(self._starter) == "dead"

    def _needs_too_much(self) -> bool:
        if self._max_memory is None:
            return False
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > self._max_memory


def main(service: Service, setup: Setup, wire: Connection, starter: str, asked: Any) -> None:
    """Run a worker process. Its first message says whether it is ready. ``asked`` is a number in
    shared memory: when it last asked whether it is to end; None if that is not needed."""
    _be_of_no_pool()
    for number in setup.deaf_to:
        signal.signal(
            number, _ignore
        )  # not SIG_IGN, which programs that a call starts would inherit
    lease.is_renewed_by_starter = True
    is_to_end = EndCondition(wire, starter, setup.max_memory, asked)
    try:
        if setup.initializer is not None:
            setup.initializer(*setup.initargs)
        service.prepare(is_to_end)
    except BaseException:
        # The standard library's executor logs it there.
        logging.getLogger("concurrent.futures").critical("Exception in initializer:", exc_info=True)
        wire.send((FAILED, "".join(traceback.format_exception(*sys.exc_info()))))
        return
    wire.send((READY, incarnation()))
    try:
        service.serve(is_to_end)
    except KeyboardInterrupt:
        pass  # a worker that waits for calls has nothing to report
    except QueueDoesNotExistError:
        raise  # the starter sees that, and ends
    except PressureError as error:
        _log.error(
            "a worker process ends in %.0f s, and another takes its place: %s", _PAUSE, error
        )
        _pause(is_to_end)
        sys.exit(1)


def _pause(is_to_end: Callable[[], bool]) -> None:
    """Wait before this process ends, as the broker refused it: the starter begins another one at
    once, which the broker most likely refuses too."""
    end = time.monotonic() + _PAUSE
    while time.monotonic() < end and not is_to_end():
        time.sleep(PAUSE)


def _be_of_no_pool() -> None:
    """Remove this thread from the standard library's pools. After a fork in a pool's thread, such
    as asyncio's, that thread is the main thread here: where the standard library ends its pools, it
    would wait for itself, and raise."""
    there: Any = thread._threads_queues  # there is no public way
    there.pop(threading.current_thread(), None)


def serve(
    queue: CallQueue,
    is_told: Callable[[], bool],
    max_calls: int | None,
    lost: Lost,
    tube: str | None = None,
) -> None:
    """Do calls, with ``tube`` only calls of this tube, until told to end, or the executor is shut
    down, or so many were done. A call that has begun is done first; calls that were taken and have
    not begun are given back.

    ``lost`` is called, in any thread, in the midst of a call that is removed, as by
    ``Executor.abort``, or given to another worker.
    """
    at = attachment_of(queue)
    outages = Outages(f"a worker of executor {queue.name!r}", reconnect=at.options.reconnect)
    with at.here.announced(1, [tube or ""]) as worker:
        _serve(queue, TakenCalls(queue, tube, worker.number), is_told, max_calls, lost, outages)


def _serve(
    queue: CallQueue,
    taken: TakenCalls,
    is_told: Callable[[], bool],
    max_calls: int | None,
    lost: Lost,
    outages: Outages,
) -> None:
    number = 0

    def is_told_before_waiting() -> bool:
        # The process that waits for the outcome before may need this processor.
        os.sched_yield()
        return is_told()

    until_told = waits_end_when(is_told_before_waiting)
    while number != max_calls and not is_told():
        tried = time.monotonic()
        try:
            with until_told:
                taken.take(None if max_calls is None else max_calls - number)
            outages.answered()
        except (WaitEnded, ShutDown, QueueDoesNotExistError):
            return
        except PASSING as error:  # outcomes are reported when it is back
            outages.failed(error, tried)
            time.sleep(PAUSE)
        except (DecodingError, AuthenticationError):
            _log.exception("a call of executor %r was buried", queue.name)
        while (task := taken.begin()) is not None:
            if not isinstance(task.data, bytes):
                taken.set_aside(task)
                continue
            number += 1
            task.when_lost(lost)
            with task.processing():
                outcome = calls.run(task.data)
            task.leave_unwatched()
            taken.end(task, outcome)
            if taken.has_others and is_told():
                taken.give_back()
        del task
    try:
        taken.finish()
    except QueueDoesNotExistError:
        pass  # the queue is gone, and no process waits for outcomes


def _ignore(number: int, frame: object) -> None:
    pass
