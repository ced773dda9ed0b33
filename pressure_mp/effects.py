"""The effects that an operation may yield to its driver.

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
    """A request whose call ends at ``end``, see :meth:`Session.call`."""

    request: Request
    end: float | None


def until(request: Any, end: float | None) -> Any:
    """Limit the call of a request to ``end``, if there is an end."""
    return request if end is None else Until(request, end)


class Wait(NamedTuple):
    """Wait for ``timeout`` seconds at most, see :meth:`Session.wait`."""

    later: Later
    timeout: float | None


class WaitEnded(Exception):
    """Thrown by a driver into an operation whose wait is to end early. The operation makes one last
    call, and then raises this."""


class Keep(NamedTuple):
    """Say that what was taken can no longer go back to the queue. ``found`` has the objects made of
    it: if the operation is interrupted now, the handle's next call returns them."""

    found: list[Any]


class On(NamedTuple):
    """Run an operation on another binding, on a session of its own; its result is sent back in."""

    binding: Binding
    operation: AnyOperation[Any]


Effect: TypeAlias = "Request | Until | Wait | Keep | On"

Operation = Generator[Effect, Any, T]

#: Returned by :attr:`Ask.read` when there is more to do.
MORE: Any = object()


def no_more(ask: Ask[T], reply: Any) -> Operation[T]:
    """Raise AssertionError: the first reply was to be all."""
    raise AssertionError(f"{reply} is all that there is")


class Ask(Generic[T]):
    """An operation that begins with a request, whose reply mostly ends it. So no generator is made
    before a reply says that there is more to do.

    ``read`` makes the result of the reply, or returns :data:`MORE`; then ``rest`` makes the
    generator that goes on, from this object and the reply. ``how`` has the facts about the caller
    that ``rest`` needs.
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
        """Run as a generator, within a larger operation."""
        reply = yield until(self.request, self.end)
        found = self.read(reply)
        return (yield from self.rest(self, reply)) if found is MORE else found


#: What a driver runs.
AnyOperation = Operation[T] | Ask[T]
