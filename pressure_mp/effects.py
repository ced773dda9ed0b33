"""What an operation may yield to its driver.

An operation is a generator without I/O. It yields requests of the engines' contract; the driver has
a session do them, and sends the replies back in. The driver throws an engine's error into the
operation, and whatever ends a wait early (KeyboardInterrupt, an asyncio cancellation) too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from .engines.contract.replies import Later

if TYPE_CHECKING:  # a queue need not load the requests of every other kind of queue
    from .engines.contract.requests import Request
    from .engines.contract.session import Binding

T = TypeVar("T")


class Until(NamedTuple):
    """A request whose call ends then, see :meth:`Session.call`."""

    request: Request
    end: float | None


def until(request: Any, end: float | None) -> Any:
    """A request whose call ends then, if there is an end."""
    return request if end is None else Until(request, end)


class Wait(NamedTuple):
    """Wait for ``timeout`` seconds at most, see :meth:`Session.wait`."""

    later: Later
    timeout: float | None


class WaitEnded(Exception):
    """What a driver throws into an operation that is to wait no longer: it does nothing more than
    to look for the last time, and then raises this."""


class Keep(NamedTuple):
    """What was taken can no longer go back to the queue. ``found`` is what came of it: should the
    operation be interrupted now, that is for the next call of the handle."""

    found: list[Any]


class On(NamedTuple):
    """An operation on another binding, on a session of its own; its result is sent back in."""

    binding: Binding
    operation: AnyOperation[Any]


Effect: TypeAlias = "Request | Until | Wait | Keep | On"

Operation = Generator[Effect, Any, T]

#: What :attr:`Ask.read` returns when the reply is not all.
MORE: Any = object()


def no_more(ask: Ask[T], reply: Any) -> Operation[T]:
    """Of one whose first reply is all."""
    raise AssertionError(f"{reply} is all that there is")


class Ask(Generic[T]):
    """An operation that begins with a request, which mostly is all: so no generator is made before
    its reply says that there is more to do.

    ``read`` makes the result of the reply, or returns :data:`MORE`; then the generator ``rest``
    goes on, if there is one, which is given this and the reply. ``how`` is what it needs to know of
    the caller.
    """

    __slots__ = ("end", "how", "read", "request", "rest")

    def __init__(
        self,
        request: Any,
        end: float | None,
        read: Callable[[Any], T],
        rest: Callable[[Ask[T], Any], Operation[T]] = no_more,
        how: Any = None,
    ) -> None:
        self.request = request
        self.end = end
        self.read = read
        self.rest = rest
        self.how = how

    def __iter__(self) -> Operation[T]:
        """The same as a generator, for an operation that it is part of."""
        reply = yield until(self.request, self.end)
        found = self.read(reply)
        return (yield from self.rest(self, reply)) if found is MORE else found


#: What a driver runs.
AnyOperation = Operation[T] | Ask[T]
