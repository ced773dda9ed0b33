"""Run the steps of this package when its process forks and when it ends, in order.

A module registers the function of a step. Only this module says when each step runs, and why then.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from . import held_signals

if TYPE_CHECKING:
    from multiprocessing.util import Finalize


class Moment(Enum):
    """When a step runs."""

    BEFORE_FORK = "in the parent before a fork, interrupted by what a signal handler raises"
    AT_FORK = "in the parent before a fork, while signals are held"
    IN_PARENT = "in the parent after a fork"
    IN_CHILD = "in the child of a fork"
    BEFORE_THREADS_END = "at the end of the program, before its threads are joined"
    BEFORE_CHILDREN_END = "at the end of the process, before its child processes are joined"
    LAST = "at the end of the process, after its child processes were joined"


class Step(NamedTuple):
    """One step: its moment, its name, and why it has its place."""

    moment: Moment
    name: str
    why: str


_FORK = (
    Step(
        Moment.BEFORE_FORK,
        "send puts for the child",
        "the child's puts come behind the earlier ones; this may wait, so it is first",
    ),
    Step(
        Moment.BEFORE_FORK,
        "lock the start of a server",
        "behind all that needs a server: from here on no thread can start one. The child must know "
        "the server, and must not keep open the pipe that tells its supervisor about the parent",
    ),
    Step(Moment.AT_FORK, "count the child", "it may use every anonymous queue that is in use here"),
    Step(
        Moment.AT_FORK,
        "finish transactions of files",
        "behind all that makes a call. To the child, a transaction in the midst of which it was "
        "forked would never end: SQLite keeps the locks of a process in its memory",
    ),
    Step(Moment.IN_PARENT, "go on with transactions of files", "the other lock is not of a file"),
    Step(Moment.IN_PARENT, "unlock the start of a server", "it was locked first"),
)

_CHILD = (
    Step(
        Moment.IN_CHILD,
        "leave the hub of eventlet",
        "before anything below could wait for a connection",
    ),
    Step(Moment.IN_CHILD, "forget the process", "the steps below need the child's name"),
    Step(Moment.IN_CHILD, "forget the thread", "as for the process"),
    Step(Moment.IN_CHILD, "forget interrupted calls", "the parent gives back what they took"),
    Step(Moment.IN_CHILD, "forget the start of a server", "before an engine may be asked for"),
    Step(Moment.IN_CHILD, "forget memory", "before a handle may look into it"),
    Step(Moment.IN_CHILD, "close connections", "before anything below could use one"),
    Step(Moment.IN_CHILD, "have time to end", "the child has not spent what the parent spent"),
    Step(Moment.IN_CHILD, "forget the thread of leases", "it does not run here; before leases are"),
    Step(Moment.IN_CHILD, "forget leases", "the parent holds them"),
    Step(Moment.IN_CHILD, "forget users of anonymous queues", "the child is a user of its own"),
    Step(Moment.IN_CHILD, "forget unsent items", "the parent sends it"),
    Step(Moment.IN_CHILD, "forget senders", "their threads are not there; before buffers"),
    Step(Moment.IN_CHILD, "forget buffers", "the parent sends and hands out their items"),
    Step(Moment.IN_CHILD, "close descriptors", "a byte read here would be missing in the parent"),
    Step(Moment.IN_CHILD, "forget handles", "behind all that they lead to"),
    Step(
        Moment.IN_CHILD,
        "forget waits of event loops",
        "with the child's copy of a socket open, its loop would seem to run after the parent's end",
    ),
    Step(Moment.IN_CHILD, "forget puts of event loops", "their tasks are the parent's"),
    Step(Moment.IN_CHILD, "forget what event loops read ahead", "it is reserved for the parent"),
    Step(Moment.IN_CHILD, "leave executors", "last: an executor is made of all the others"),
)

_END = (
    Step(
        Moment.BEFORE_THREADS_END,
        "end executors",
        "as concurrent.futures: a thread may wait for a call, and a call needs a thread",
    ),
    Step(
        Moment.BEFORE_CHILDREN_END,
        "stop looks for descriptors",
        "first: a look asks a broker, and the steps below end the use of the broker",
    ),
    Step(
        Moment.BEFORE_CHILDREN_END,
        "send puts",
        "before this process is no producer any more; the children may wait for its items",
    ),
    Step(Moment.BEFORE_CHILDREN_END, "send puts of event loops", "as puts of threads"),
    Step(
        Moment.BEFORE_CHILDREN_END,
        "give back what is read ahead",
        "while this process is still a consumer; the children may wait for it",
    ),
    Step(Moment.BEFORE_CHILDREN_END, "give back what event loops read ahead", "as threads do"),
    Step(
        Moment.BEFORE_CHILDREN_END,
        "end leases",
        "behind all that needs them; the children may wait for items of this process",
    ),
    Step(
        Moment.LAST,
        "leave anonymous queues",
        "the children used them until now, and with the last user they are gone",
    ),
    Step(Moment.LAST, "close connections at the end", "behind all steps that use them"),
    Step(
        Moment.LAST,
        "stop the client of FoundationDB",
        "behind all steps that make a call; its library must not run when the process exits",
    ),
    Step(
        Moment.LAST,
        "let threads begin",
        "behind all that starts threads: Python frees the state of each thread. A thread that was "
        "started, and does not run yet, would then end the process with SIGSEGV",
    ),
)

STEPS = (*_FORK, *_CHILD, *_END)

_NAMED = {step.name: step for step in STEPS}
_registered: dict[Step, Callable[[], object]] = {}

#: How far the end of the process has come: None, the first steps, the last steps.
_reached: Moment | None = None
#: Whether the end of this process runs the steps; and the finalizer that runs the last of them.
_is_armed = False
_armed: Finalize | None = None
#: Whether this process has the hooks before a fork, of its own or from a parent that forked it.
_has_hooks = False


def register(name: str, function: Callable[[], object]) -> None:
    """Register the function of a step. Raises KeyError for a name that is not in the list."""
    step = _NAMED[name]
    _registered[step] = function
    if step.moment is Moment.BEFORE_THREADS_END:
        try:  # there is no public way
            threading._register_atexit(partial(_run, step.moment))  # type: ignore[attr-defined]
        except RuntimeError:  # they were joined
            function()


def take_over(name: str, function: Callable[[], object], other: Callable[[], object]) -> None:
    """Register the function of a step instead of one that a library has registered with atexit."""
    atexit.unregister(other)
    register(name, function)


def begin_use() -> None:
    """Arrange, at the first use of a broker, that the steps before a fork and at the process's end
    run, in the order of ``multiprocessing.util.Finalize``. If it is too late for that, run the
    steps of the end now: puts from then on are sent at once."""
    global _is_armed
    if _is_armed:
        return
    # Once functions of atexit run, a function that one of them registers is not called.
    is_too_late = is_interpreter_ending() and "multiprocessing.util" not in sys.modules
    from multiprocessing.util import is_exiting, register_after_fork

    _arm()
    # A process of multiprocessing begins with clearing what was to be called at its end. By then a
    # spawned process has unpickled its handles, which use a broker.
    register_after_fork(begin_use, _arm_again)
    # If this is interrupted before that, or runs in two threads, the steps run twice: better than
    # never.
    _is_armed = True
    hook_forks()
    if is_too_late or is_exiting():
        _end_first()
        _end_last()


def _arm() -> None:
    """Arrange that the steps of the process's end run, unless that is arranged already."""
    from multiprocessing.util import Finalize

    global _armed
    if _armed is None or not _armed.still_active():
        Finalize(None, _end_first, exitpriority=20)
        _armed = Finalize(None, _end_last, exitpriority=-1000)


def _arm_again(_: object) -> None:
    if _is_armed:
        _arm()


def is_interpreter_ending() -> bool:
    """Tell whether functions of atexit run, or ran: there is no thread except daemons and this one,
    and no pool can start a thread."""
    return not threading.main_thread().is_alive()


def import_late() -> None:
    """Import ``concurrent.futures.thread``, as clients of brokers do, while functions of atexit
    run. Its own import fails then: it registers a join of its threads, for which it is too late."""
    if is_interpreter_ending() and "concurrent.futures.thread" not in sys.modules:
        register: Any = threading._register_atexit  # type: ignore[attr-defined]
        threading._register_atexit = lambda *_: None  # type: ignore[attr-defined]
        try:
            import concurrent.futures.thread  # noqa: F401
        finally:
            threading._register_atexit = register  # type: ignore[attr-defined]


def is_ending() -> bool:
    """Tell whether the process ends: what was put into buffers is sent, and nothing is read
    ahead."""
    return _reached is not None


def end_daemon() -> None:
    """End the calling daemon thread if its queue is gone because the process ends and has left it.
    SystemExit ends the thread before the interpreter would: without a message, and with all locks
    released."""
    if _reached is Moment.LAST and threading.current_thread().daemon:
        raise SystemExit


def _end_first() -> None:
    global _reached
    _reached = _reached or Moment.BEFORE_CHILDREN_END
    _run(Moment.BEFORE_CHILDREN_END)


def _end_last() -> None:
    global _reached
    _reached = Moment.LAST
    _run(Moment.LAST)


def _run(moment: Moment) -> None:
    """Run each step of a moment, also when a step before it failed. An exception from outside, as
    by Ctrl-C, stops the steps: the process is to end without waiting."""
    failure: Exception | None = None
    for step in STEPS:
        if step.moment is moment and step in _registered:
            try:
                _registered[step]()
            except Exception as error:
                failure = failure or error
    if failure is not None:
        raise failure


# Forks

#: Turns of the hook before a fork that have begun: one for each thread that forks just now.
_ready: deque[Iterator[None]] = deque()
_THREADS = 8


def hook_forks() -> None:
    """Run the steps before each fork from now on, and hold signals in it.

    Not when this module is imported: Python calls the hook first that was registered last. So
    signals are held in the hooks of all that was imported until the first use of a broker."""
    global _has_hooks
    if _has_hooks:
        return
    import_late()
    # These have hooks too, in which an exception of a signal handler is lost: so before ours.
    import concurrent.futures.thread  # noqa: F401
    import logging  # noqa: F401
    import random  # noqa: F401

    _has_hooks = True
    _make_ready()
    # Python has begun a function when it first looks for signals: an exception of a handler there
    # is caught by nothing in the function. A generator that has begun is in the midst of its
    # ``try``.
    os.register_at_fork(
        before=partial(next, map(next, starmap(_ready.popleft, repeat(())))),
        after_in_parent=_after_fork_in_parent,
    )
    os.register_at_fork(
        after_in_parent=held_signals.ask_to_let_go, after_in_child=held_signals.ask_to_let_go
    )


def _make_ready() -> None:
    while len(_ready) < _THREADS:
        turn = _before_fork()
        next(turn)
        _ready.append(turn)


def _before_fork() -> Iterator[None]:
    try:
        yield
        _make_ready()
        _run(Moment.BEFORE_FORK)
        held_signals.hold()
    except BaseException as error:
        held_signals.keep(error)
        held_signals.hold()
    _make_ready()
    _run(Moment.AT_FORK)
    yield


def _after_fork_in_parent() -> None:
    try:
        _run(Moment.IN_PARENT)
    finally:
        held_signals.let_go_next()


def _after_fork_in_child() -> None:
    global _reached, _is_armed, _armed
    _reached, _is_armed, _armed = None, False, None
    held_signals.let_go_next()
    _run(Moment.IN_CHILD)


os.register_at_fork(after_in_child=_after_fork_in_child)
