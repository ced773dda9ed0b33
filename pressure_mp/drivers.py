"""The loop that runs an operation on an engine's session, with and without ``await``."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol

from .effects import Call, Effect, Gone, Operation, Park, Reply, T
from .identity import is_gone


class Session(Protocol):
    """One operation's dealings with an engine."""

    def call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Reply:
        """Do ``op`` atomically and once; ``end`` as in :class:`pressure_mp.effects.Call`."""

    def park(self, signal: str, timeout: float | None) -> bool:
        """Wait for ``signal``, at most ``timeout`` seconds, often less; True when it came."""

    def end(self) -> None:
        """The operation is over: give up what the session holds. Raises nothing."""


class AsyncSession(Protocol):
    """The same, for asyncio."""

    async def call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Reply:
        """Do ``op`` atomically and once; ``end`` as in :class:`pressure_mp.effects.Call`."""

    async def park(self, signal: str, timeout: float | None) -> bool:
        """Wait for ``signal``, at most ``timeout`` seconds, often less; True when it came."""

    async def end(self) -> None:
        """The operation is over: give up what the session holds. Raises nothing."""


class WaitEnded(Exception):
    """A wait was ended as :func:`waits_end_when` said. The operation did nothing."""


_end_of_waits: ContextVar[Callable[[], bool] | None] = ContextVar("end of waits", default=None)


class waits_end_when:
    """Within this block, an operation of this thread that waits raises :class:`WaitEnded` once
    ``condition()`` is true: at most a second later, when it looks again by itself. Until then it
    keeps its place in line. One that need not wait is done. The block can be entered again, by
    other threads too, but not within itself.
    """

    __slots__ = ("_condition",)

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition

    def __enter__(self) -> None:
        _end_of_waits.set(self._condition)

    def __exit__(self, *exc_info: object) -> None:
        _end_of_waits.set(None)


def drive(
    operation: Operation[T], session: Session, watch: AbstractContextManager[None] | None = None
) -> T:
    """Run ``operation`` to its end; blocks while the operation parks.

    ``watch`` is entered whenever it parks, but for the first time, which is mostly short.
    """
    answer: Any
    parked = False
    try:
        effect = next(operation)
        while True:
            try:
                if type(effect) is Call:
                    answer = session.call(*effect)
                elif type(effect) is Park and parked and watch is not None:
                    with watch:
                        answer = _perform(effect, session)
                else:
                    answer = _perform(effect, session)
                    parked = parked or type(effect) is Park
            except BaseException as error:  # cancellation too: the operation cleans up
                effect = operation.throw(error)
            else:
                effect = operation.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        session.end()


def do(session: Session, op: str, args: tuple[Any, ...]) -> Reply:
    """One call that is a whole operation: what most puts and gets are. To drive a generator for it
    would take as long again as all else in Python."""
    try:
        return session.call(op, args)
    finally:
        session.end()


async def adrive(operation: Operation[T], session: AsyncSession) -> T:
    """Run ``operation`` to its end; the task waits while the operation parks."""
    try:
        effect = next(operation)
        while True:
            try:
                answer = await _aperform(effect, session)
            except BaseException as error:  # CancelledError too: the operation cleans up
                effect = operation.throw(error)
            else:
                effect = operation.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        await session.end()


def noting(operation: Operation[T], note: Callable[[bool], None]) -> Operation[T]:
    """An operation that tells ``note`` when it begins and when it ends to wait."""
    try:
        effect = next(operation)
        while True:
            waits = type(effect) is Park
            try:
                if waits:
                    note(True)
                answer = yield effect
                if waits:
                    note(False)
            except BaseException as error:
                effect = operation.throw(error)
            else:
                effect = operation.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _perform(effect: Effect, session: Session) -> Any:
    if type(effect) is Park:
        is_over = _end_of_waits.get()
        if is_over is not None and is_over():
            raise WaitEnded
        return session.park(effect.signal, effect.timeout)
    return _look(effect)


def _look(effect: Effect) -> Any:
    """What needs no engine."""
    return is_gone(effect.who) if type(effect) is Gone else time.monotonic()


async def _aperform(effect: Effect, session: AsyncSession) -> Any:
    if type(effect) is Call:
        return await session.call(*effect)
    if type(effect) is Park:
        return await session.park(effect.signal, effect.timeout)
    return _look(effect)
