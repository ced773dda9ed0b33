"""Hold signals that come while this process forks: their handlers run when the fork is over.

Python drops an exception that a hook of a fork raises, also when a signal handler raised it there.
So Ctrl-C would be lost if it came in a hook, of this package or of another one, or in the system
call in between. While signals are held, Python's handlers only note them. Another signal handler
puts the handlers back; no program sends its signal. A hook that is a function of C asks for that
signal, so that the handler runs behind all hooks, where a handler may raise.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # looks up no enum; gevent leaves it as it is
import _thread
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

_NUMBERS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
#: Asks to put the handlers back. No program sends this signal: it has the last number.
_LET_GO = _NUMBERS[-1]


def _interrupt_main() -> Callable[[int], None]:
    """Python's own ``_thread.interrupt_main``, also where eventlet has replaced it."""
    spec: Any = _thread.__spec__
    module = spec.loader.create_module(spec)
    spec.loader.exec_module(module)
    found: Callable[[int], None] = module.interrupt_main
    return found


#: To be called behind all hooks, in the parent and in the child. No Python runs in it.
ask_to_let_go: Callable[[], None] = partial(_interrupt_main(), _LET_GO)

#: The handlers of the signals that are held.
_handlers: dict[int, Any] = {}
#: Signals that came, each with its process: the signal's number, or what its handler raised.
_came: list[tuple[int, int | BaseException]] = []
_are_held = False


def keep(error: BaseException) -> None:
    """Keep an exception that a handler raised where Python would drop it: it is raised when signals
    are let go. In other threads than the main one no handler runs, and ``error`` is raised."""
    global _came
    if threading.current_thread() is not threading.main_thread():
        raise error
    _came += ((os.getpid(), error),)


def hold() -> None:
    """Note signals from now on. Python's handlers run in the main thread, so a fork in another
    thread is not interrupted. If a handler that was not yet held raises, a second call does the
    rest."""
    global _are_held
    if threading.current_thread() is not threading.main_thread():
        return
    _are_held = True
    for number in _NUMBERS:
        handler = _signal.getsignal(number)
        if callable(handler) and handler not in (_note, _let_go):
            _handlers[number] = handler
            _signal.signal(number, _note)
    _handlers.setdefault(_LET_GO, _signal.SIG_DFL)
    _signal.signal(_LET_GO, _let_go)


def let_go_next() -> None:
    """Let :data:`ask_to_let_go` put the handlers back: all other hooks are over."""
    global _are_held
    _are_held = False


def _note(number: int, frame: FrameType | None) -> None:
    global _came
    _came += ((os.getpid(), number),)


def _let_go(_: int, frame: FrameType | None) -> None:
    if _are_held:  # another thread forked as well
        return
    handlers = dict(_handlers)
    try:
        _put_back()
    finally:
        _hand_over(handlers, frame)


def _put_back() -> None:
    while _handlers:
        number, handler = _handlers.popitem()
        try:
            _signal.signal(number, handler)
        except BaseException:  # from the handler of a signal that came meanwhile
            _signal.signal(number, handler)
            _put_back()
            raise


def _hand_over(handlers: dict[int, Any], frame: FrameType | None) -> None:
    """Run the handlers of the signals that came: each handler, also when one before it raises."""
    if not _came:
        return
    process, what = _came.pop(0)
    try:
        if process == os.getpid():
            if isinstance(what, BaseException):
                raise what
            handlers[what](what, frame)
    finally:
        _hand_over(handlers, frame)
