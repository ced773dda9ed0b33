"""Exceptions that come from outside, at any moment: Ctrl-C, and all that signal handlers raise.

Python runs signal handlers in the main thread only, where a function begins, behind a call of a
function that is written in C (Python 3.10: of any), at the end of a loop's body, and while some
calls wait. Between other steps it runs none: a name, an attribute or an element is set or deleted,
``+=`` extends a list or a deque, a ``for`` asks a C iterator for its next element, ``with`` enters
a lock of C, an ``except`` clause is reached, a value is returned. Code that must not be torn apart
consists of such steps. Where that is not possible, it first notes what it is about to do, and later
code looks into the note.

From Python 3.12 on the jump to the next turn of a loop, behind an ``if`` that was not so, is
outside of the ``with`` or ``try`` around the loop: an exception there leaves the lock held. So such
a loop is in a function of its own, which is called in there.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from types import FrameType
from typing import Any, Protocol, TypeVar

from . import lifecycle

T = TypeVar("T")


class Claimant(Protocol):
    """Takes items out of a queue on behalf of a caller that may never get them."""

    def _give_up(self, claim: Any) -> None:
        """Have a claim's items go back, if it has any; may be called again."""


#: The claims of interrupted calls, each with the object that can give it up. Code that adds a
#: claim, with ``+=``, then calls :func:`settle`; if that is interrupted too, the next call does it.
abandoned: list[tuple[Claimant, Any]] = []


#: Each claim is given up by one thread at a time: two of them would end its session together, and
#: hand out its items twice. The same thread may come again, from a signal handler.
_settling = threading.RLock()
#: Seconds to wait while another thread gives claims up.
_PATIENCE = 5.0


def settle() -> None:
    """Give up all abandoned claims; or wait while another thread does, for 5 seconds at most, as
    its broker may be silent."""
    for held in attempts(_settling, _PATIENCE):
        if not held:
            return
        try:
            _settle_all()
        finally:
            _settling.release()


def _settle_all() -> None:
    while abandoned:
        entry = abandoned[0]
        claimant, claim = entry
        claimant._give_up(claim)
        try:
            abandoned.remove(entry)
        except ValueError:  # a signal handler's call was faster
            return


def attempts(lock: Any, *timeouts: float, more: float | None = None) -> Iterator[bool]:
    """Return an iterator for a ``for`` loop: each step tries to acquire a lock, for the next of the
    seconds given, and then, with ``more``, for so long again and again. After True, the body is to
    release it."""
    every = chain(timeouts, repeat(more)) if more is not None else timeouts
    return map(lock.acquire, repeat(True), every)


def pops(items: deque[T]) -> Iterator[T]:
    """Return an iterator for a ``for`` loop: each step takes the first element out. Raises
    IndexError when there is none."""
    return map(deque.popleft, repeat(items))


#: Threads that were started and do not run yet.
_beginning: set[threading.Thread] = set()
#: Seconds for which the end of the process waits until they run.
_BEGINNING = 1.0


def start(thread: threading.Thread) -> None:
    """Start a thread without waiting until it runs: such a wait can be interrupted half-way. The
    thread itself notes all that is to be noted of it. Raises RuntimeError when the interpreter is
    ending."""
    _beginning.add(thread)
    try:
        _thread.start_new_thread(_start, (thread,))
    except BaseException:
        _beginning.discard(thread)
        raise


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError:  # there is no other thread any more, but there is this one
        _beginning.discard(thread)
        thread.run()
    else:
        _beginning.discard(thread)


def _let_begin() -> None:
    end = monotonic() + _BEGINNING
    while _beginning and monotonic() < end:
        sleep(0.001)


def is_held(lock: Any) -> bool:
    """Tell whether this thread has an RLock: then the caller is a signal handler or a finalizer
    that runs in the midst of code under this lock."""
    found: bool = lock._is_owned()  # what threading.Condition asks, too
    return found


def calls_of(method: Any) -> int:
    """Count the calls of a method of one object that the calling thread is in the midst of."""
    code, one, number = method.__func__.__code__, method.__self__, 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is code and frame.f_locals.get("self") is one:
            number += 1
        frame = frame.f_back
    return number


class Signs:
    """Let threads wait for changes that other threads make. No lock is held meanwhile."""

    def __init__(self) -> None:
        self._waiting: set[SimpleQueue[None]] = set()

    def give(self) -> None:
        """Have all waiting threads look again."""
        for waiter in tuple(self._waiting):
            waiter.put(None)

    def wait_until(self, is_so: Callable[[], bool], end: float | None = None) -> bool:
        """Wait until ``is_so()``, no longer than ``end`` on the monotonic clock; return whether it
        is so."""
        waiter: SimpleQueue[None] = SimpleQueue()
        try:
            self._waiting.add(waiter)
            while not is_so():
                try:
                    waiter.get(timeout=None if end is None else max(end - monotonic(), 0.0))
                except Empty:
                    return is_so()
            return True
        finally:
            self._waiting.discard(waiter)


def is_from_outside(error: BaseException) -> bool:
    """Tell whether a signal handler raised ``error``, and not the code that was running."""
    if not isinstance(error, Exception):
        return True
    traceback = error.__traceback__
    if traceback is None or traceback.tb_next is None:
        return False  # only the function that caught it ran
    handlers = {
        getattr(handler, "__code__", None)
        for number in signal.valid_signals()
        if callable(handler := signal.getsignal(number))
    }
    interrupted: FrameType | None = None
    while traceback is not None:
        frame = traceback.tb_frame
        # Whatever kind of callable it is, it was given the frame that it interrupted.
        if frame.f_code in handlers or (interrupted and _was_given(frame, interrupted)):
            return True
        interrupted, traceback = frame, traceback.tb_next
    return False


def _was_given(frame: FrameType, interrupted: FrameType) -> bool:
    for value in frame.f_locals.values():
        if value is interrupted or (
            type(value) is tuple and any(one is interrupted for one in value)
        ):
            return True
    return False


def _after_fork_in_child() -> None:
    global _settling
    _settling = threading.RLock()
    abandoned.clear()
    _beginning.clear()


lifecycle.register("forget interrupted calls", _after_fork_in_child)
lifecycle.register("let threads begin", _let_begin)
