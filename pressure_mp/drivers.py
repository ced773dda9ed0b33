"""The loop that runs an operation on an engine's session, with and without ``await``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import GeneratorType
from typing import Any

from . import lifecycle
from .effects import (
    MORE,
    AnyOperation,
    Ask,
    Effect,
    Keep,
    On,
    Operation,
    T,
    Until,
    Wait,
    WaitEnded,
)
from .engines.contract.cancellation import mark_as_waiting
from .engines.contract.session import AsyncSession, Session
from .exceptions import PressureError, QueueDoesNotExistError

#: Makes the context that is entered while an operation waits.
Guard = Callable[[], AbstractContextManager[None]]

#: The effects that are not requests.
_NOT_REQUESTS = frozenset((Until, Wait, Keep, On))


_end_of_waits: ContextVar[Callable[[], bool] | None] = ContextVar("end of waits", default=None)


class waits_end_when:
    """Within this block, an operation of this thread that waits raises :class:`WaitEnded` once
    ``condition()`` is true: at most a second later, when it looks again by itself. Until then it
    keeps its place in line. An operation that need not wait is done. The block can be entered
    again, by other threads too, but not within itself.
    """

    __slots__ = ("_condition",)

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition

    def __enter__(self) -> None:
        _end_of_waits.set(self._condition)

    def __exit__(self, *exc_info: object) -> None:
        _end_of_waits.set(None)


def drive(operation: AnyOperation[T], session: Session, guard: Guard | None = None) -> T:
    """Run ``operation`` to its end; blocks while it waits.

    Enter ``guard()`` around each wait but the first, which is mostly short.
    """
    try:
        return drive_on(operation, session, guard)
    finally:
        session.end()


def drive_on(operation: AnyOperation[T], session: Session, guard: Guard | None = None) -> T:
    """Run ``operation`` as :func:`drive` does, but leave the session open: the caller ends it.

    Throw each exception into the operation, wherever it was raised.
    """
    try:
        if type(operation) is Ask:
            try:
                reply = session.call(operation.request, operation.end)
            except PressureError:
                raise
            except BaseException:
                session.interrupted()
                raise
            found = operation.read(reply)
            if found is not MORE:
                return found
            operation = operation.rest(operation, reply)
        assert isinstance(operation, GeneratorType)
        steps: Operation[T] = operation
        return _go_on(steps, session, guard, steps.send, None)
    except QueueDoesNotExistError:
        lifecycle.end_daemon()
        raise


def _go_on(
    operation: Operation[T],
    session: Session,
    guard: Guard | None,
    send: Callable[[Any], Effect],
    value: Any,
) -> T:
    waited = False
    while True:
        try:
            effect = send(value)
            send, value = operation.send, None
            waits = type(effect) is Wait
            if waits and waited and guard is not None:
                with guard():
                    value = _perform(effect, session)
            else:
                value = _perform(effect, session)
                waited = waited or waits
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        except BaseException as error:
            value = None  # no cycle
            if operation.gi_frame is None:  # type: ignore[attr-defined]
                raise  # it has ended with that
            if not isinstance(error, (PressureError, WaitEnded)):
                session.interrupted()
            send, value = operation.throw, error


def _perform(effect: Effect, session: Session) -> Any:
    call: Any = session.call
    if type(effect) not in _NOT_REQUESTS:
        return call(effect)
    if isinstance(effect, Wait):
        is_over = _end_of_waits.get()
        if is_over is not None and is_over():
            raise WaitEnded
        return session.wait(*effect)
    if isinstance(effect, Keep):
        session.found = effect.found
        return None
    if isinstance(effect, On):
        return drive(effect.operation, effect.binding.session())
    return call(*effect)


async def adrive(
    operation: AnyOperation[T], session: AsyncSession, guard: Guard | None = None
) -> T:
    """Run ``operation`` to its end; the task waits while the operation does. ``guard`` is entered
    as by :func:`drive`."""
    value: Any = None
    waited = False
    try:
        if type(operation) is Ask:
            reply = await session.call(operation.request, operation.end)
            found = operation.read(reply)
            if found is not MORE:
                return found
            operation = operation.rest(operation, reply)
        assert isinstance(operation, GeneratorType)
        send: Callable[[Any], Effect] = operation.send
        while True:
            try:
                effect = send(value)
                send, value = operation.send, None
                waits = type(effect) is Wait
                if waits and waited and guard is not None:
                    with guard():
                        value = await _aperform(effect, session)
                else:
                    value = await _aperform(effect, session)
                    waited = waited or waits
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            except BaseException as error:  # CancelledError too: the operation cleans up
                value = None
                if operation.gi_frame is None:
                    raise
                send, value = operation.throw, error
    except QueueDoesNotExistError:
        lifecycle.end_daemon()
        raise
    finally:
        await session.end()


async def _aperform(effect: Effect, session: AsyncSession) -> Any:
    call: Any = session.call
    if type(effect) not in _NOT_REQUESTS:
        return await call(effect)
    if isinstance(effect, Wait):
        try:
            return await session.wait(*effect)
        except BaseException as error:
            mark_as_waiting(error)
            raise
    if isinstance(effect, Keep):
        session.found = effect.found
        return None
    if isinstance(effect, On):
        return await adrive(effect.operation, effect.binding.asession())
    return await call(*effect)


def through(operation: AnyOperation[T], do: Callable[[Effect], Operation[Any]]) -> Operation[T]:
    """Run an operation, and have ``do`` do each of its effects."""
    steps = iter(operation)
    assert isinstance(steps, GeneratorType)
    return _through(steps, do, steps.send, None)


def _through(
    steps: Operation[T],
    do: Callable[[Effect], Operation[Any]],
    send: Callable[[Any], Effect],
    value: Any,
) -> Operation[T]:
    try:
        while True:
            effect = send(value)
            send = steps.send
            value = yield from do(effect)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    except BaseException as error:
        if steps.gi_frame is None:  # type: ignore[attr-defined]
            raise  # it has ended with that
        return (yield from _through(steps, do, steps.throw, error))


def ending(operation: AnyOperation[T], end: float) -> Operation[T]:
    """Limit each call of an operation to ``end``, however long the broker cannot be reached."""

    def do(effect: Any) -> Operation[Any]:
        if isinstance(effect, Until):
            effect = effect._replace(end=end)
        elif not isinstance(effect, (Wait, Keep, On)):
            effect = Until(effect, end)
        return (yield effect)

    return through(operation, do)


def noting(operation: AnyOperation[T], note: Callable[[bool], None]) -> Operation[T]:
    """Run an operation, and tell ``note`` when it begins to wait (True) and when it stops
    (False)."""

    def do(effect: Effect) -> Operation[Any]:
        if type(effect) is not Wait:
            return (yield effect)
        note(True)
        try:
            return (yield effect)
        finally:
            note(False)

    return through(operation, do)
