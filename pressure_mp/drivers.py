"""The loop that runs an operation on an engine's session, with and without ``await``."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol

from .effects import Call, Effect, Gone, Operation, Park, Reply, T
from .exceptions import PressureError
from .identity import is_gone


class Session(Protocol):
    """One operation's dealings with an engine."""

    #: What was made of the items that were taken out, once they can no longer go back.
    found: list[Any] | None

    def call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Reply:
        """Do ``op`` atomically and once; ``end`` as in :class:`pressure_mp.effects.Call`."""

    def park(self, signal: str, timeout: float | None) -> bool:
        """Wait for ``signal``, at most ``timeout`` seconds, often less; True when it came."""

    @property
    def taken(self) -> Any:
        """What tells the operation ``take_back`` which call of the session took items out last;
        None when there is nothing that could be taken back."""

    def interrupted(self) -> None:
        """An exception came that is none of the engine's: the operation only cleans up."""

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
    try:
        return drive_on(operation, session, watch)
    finally:
        session.end()


def drive_on(
    operation: Operation[T],
    session: Session,
    watch: AbstractContextManager[None] | None = None,
    send: Callable[[Any], Effect] | None = None,
    answer: Any = None,
) -> T:
    """The same, for one that ends the session itself.

    Whatever is raised, wherever, is thrown into the operation, which then cleans up.
    """
    parked = False
    send = send or operation.send
    try:
        while True:
            effect = send(answer)
            send = operation.send
            if type(effect) is Call:
                answer = session.call(*effect)
            elif type(effect) is Park and parked and watch is not None:
                with watch:
                    answer = _perform(effect, session)
            else:
                answer = _perform(effect, session)
                parked = parked or type(effect) is Park
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    except BaseException as error:
        if operation.gi_frame is None:  # type: ignore[attr-defined]
            answer = None  # no cycle
            raise  # it has ended with that
        if not isinstance(error, (PressureError, WaitEnded)):
            session.interrupted()
        return drive_on(operation, session, watch, operation.throw, error)


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


def ending(operation: Operation[T], end: float) -> Operation[T]:
    """An operation whose calls take no longer than ``end``, to reach the broker again."""
    try:
        effect = next(operation)
        while True:
            if type(effect) is Call:
                effect = effect._replace(end=end)
            effect = operation.send((yield effect))
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def noting(operation: Operation[T], note: Callable[[bool], None]) -> Operation[T]:
    """An operation that tells ``note`` when it begins and when it ends to wait."""
    return _noting(operation, note, operation.send, None)


def _noting(
    operation: Operation[T],
    note: Callable[[bool], None],
    send: Callable[[Any], Effect],
    answer: Any,
) -> Operation[T]:
    try:
        while True:
            effect = send(answer)
            send, waits = operation.send, type(effect) is Park
            if waits:
                note(True)
            answer = yield effect
            if waits:
                note(False)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    except BaseException as error:
        if operation.gi_frame is None:  # type: ignore[attr-defined]
            raise  # it has ended with that
        return (yield from _noting(operation, note, operation.throw, error))


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
