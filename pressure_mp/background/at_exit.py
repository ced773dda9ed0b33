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


class _Farewells:
    """The time that this process may still wait for brokers at its end."""

    def __init__(self) -> None:
        self._left = LIMIT
        self._away: set[int] = set()
        #: The brokers that this process ever used.
        self.brokers: set[int] = set()

    @property
    def left(self) -> float:
        """Return the seconds that can still be waited."""
        return max(self._left, 0.0)

    def spend(self, seconds: float) -> None:
        """Note that so many seconds were waited."""
        self._left -= seconds

    def give_up(self, engine: Engine) -> None:
        """Note that a broker does not answer: it is not asked again."""
        self._away.add(id(engine))

    def share(self, engine: Engine) -> float:
        """Return the seconds for a broker, 0 for a broker that did not answer before."""
        if id(engine) in self._away:
            return 0.0
        return self.left / max(len(self.brokers - self._away), 1)


_farewells = _Farewells()


def meet(engine: Engine) -> None:
    """Note that this process uses a broker, which gets a share of the time at the end."""
    _farewells.brokers.add(id(engine))


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
    share = _farewells.share(engine)
    if not share:
        return False
    began = time.monotonic()
    try:
        words(Options(reconnect=min(reconnect, share), until=began + share))
    except BrokerUnavailable:
        _farewells.give_up(engine)
        is_free = False
        return False
    finally:
        if not is_free:
            _farewells.spend(time.monotonic() - began)
    return True


def enter(lock: threading.Lock, most: float = LIMIT) -> bool:
    """Acquire, at the process's end, a lock that a thread may hold for ever; return whether it was
    acquired."""
    began = time.monotonic()
    try:
        return lock.acquire(timeout=min(most, _farewells.left))
    finally:
        _farewells.spend(time.monotonic() - began)


def give_up(engine: Engine) -> None:
    """Note, at the process's end, that the broker is known not to answer."""
    _farewells.give_up(engine)


def tell(text: str) -> None:
    """Say on stderr, if there is one, what an ending process leaves behind."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            print(f"pressure_mp: {text}", file=sys.stderr, flush=True)


def _after_fork_in_child() -> None:
    global _farewells
    brokers, _farewells = _farewells.brokers, _Farewells()
    _farewells.brokers = brokers


lifecycle.register("have time to end", _after_fork_in_child)
