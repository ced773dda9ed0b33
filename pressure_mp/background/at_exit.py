"""Limit the time that a process takes to end, and say what it leaves behind.

A broker that answers is waited for. All waits for brokers that do not answer share one limit: each
broker gets an equal part of the time that is left, and is not asked again once that is used up.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from .. import lifecycle
from ..engines.contract.session import Engine, Options
from ..exceptions import BrokerUnavailable

#: Seconds that an ending process waits for brokers that do not answer, all together.
LIMIT = 5.0
#: Seconds for which a broker that refuses connections is tried again.
_RECONNECT = 1.0


#: The seconds that this process may still wait for brokers at its end.
_left = LIMIT
#: The brokers that this process ever used, and the brokers that did not answer at its end.
_brokers: set[int] = set()
_away: set[int] = set()


def meet(engine: Engine) -> None:
    """Note that this process uses a broker, which gets a share of the time at the end."""
    _brokers.add(id(engine))


def give_up(engine: Engine) -> None:
    """Note, at the process's end, that a broker does not answer: it is not asked again."""
    _away.add(id(engine))


def _spend_since(began: float) -> None:
    global _left
    _left = max(_left - (time.monotonic() - began), 0.0)


def say(engine: Engine, words: Callable[[Options], object]) -> bool:
    """Call ``words`` at the process's end, with options that end all calls to the broker in time.

    Returns whether the broker answered. Other errors of ``words`` are raised.
    """
    return _say(engine, words, _RECONNECT)


def answers(engine: Engine, ask: Callable[[Options], object]) -> bool:
    """Tell, at the process's end, whether the broker answers the request of ``ask``. While it
    refuses connections it is tried again as long as there is time. An answer costs none of the
    time."""
    return _say(engine, ask, LIMIT, is_free=True)


def _say(
    engine: Engine, words: Callable[[Options], object], reconnect: float, is_free: bool = False
) -> bool:
    if not _left or id(engine) in _away:
        return False
    began, share = time.monotonic(), _left / max(len(_brokers - _away), 1)
    try:
        words(Options(reconnect=min(reconnect, share), until=began + share))
    except BrokerUnavailable:
        give_up(engine)
        is_free = False
        return False
    finally:
        if not is_free:
            _spend_since(began)
    return True


def enter(lock: threading.Lock, most: float) -> bool:
    """Acquire, at the process's end, a lock that a thread may hold for ever; return whether it was
    acquired."""
    began = time.monotonic()
    try:
        return lock.acquire(timeout=min(most, _left))
    finally:
        _spend_since(began)


def tell(text: str) -> None:
    """Say on stderr, if there is one, what an ending process leaves behind."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            print(f"pressure_mp: {text}", file=sys.stderr, flush=True)


def _after_fork_in_child() -> None:
    global _left
    _left = LIMIT
    _away.clear()


lifecycle.register("have time to end", _after_fork_in_child)
