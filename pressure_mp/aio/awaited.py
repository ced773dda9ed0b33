"""Make methods of asyncio from the methods for threads: each has one signature, docstring and body.

Such a method checks its arguments, and returns what its last call returns: of a method such as
``self._run``, which runs an operation. The handles of asyncio have the same methods as coroutine
functions: there the last call returns a coroutine.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing import Concatenate

    from typing_extensions import ParamSpec

    P = ParamSpec("P")

F = TypeVar("F", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type)
S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")


class Awaiting:
    """A class whose methods :func:`awaited` makes."""

    __slots__ = ()

    async def _then(self, found: Coroutine[Any, Any, T], then: Callable[[T], U]) -> U:
        """Return what ``then`` makes of the result of another call."""
        return then(await found)


def awaited(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Make a coroutine function that awaits what a method for threads returns here."""
    there: Callable[..., Any] = method

    async def call(self: Any, *args: Any, **options: Any) -> Any:
        return await there(self, *args, **options)

    made: Callable[..., Any] = _as_there(call, there)
    return made


def awaited_open(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Do the same for a method that needs an open handle."""
    there: Callable[..., Any] = method

    async def call(self: Any, *args: Any, **options: Any) -> Any:
        queue = self._at
        if queue.binding is None and not queue.is_closed:
            await self.open()
        return await there(self, *args, **options)

    made: Callable[..., Any] = _as_there(call, there)
    return made


def _as_there(call: Any, there: Callable[..., Any]) -> Any:
    call.__code__ = call.__code__.replace(co_name=there.__name__)  # for tracebacks
    return update_wrapper(call, there)


def signed_as(there: Callable[..., Any]) -> Callable[[F], F]:
    """Take over the signature and the docstring of a method for threads."""

    def sign(own: F) -> F:
        update_wrapper(own, there)
        return own

    return sign


def as_in(kind: type[Any]) -> Callable[[Kind], Kind]:
    """Take over the docstrings of the methods of ``kind``, for the public methods of a class that
    have none."""

    def take_over(own: Kind) -> Kind:
        for name, method in vars(own).items():
            method = getattr(method, "__func__", method)
            if not name.startswith("_") and getattr(method, "__doc__", "") is None:
                method.__doc__ = getattr(kind, name).__doc__
        return own

    return take_over
