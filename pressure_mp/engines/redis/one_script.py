"""Implementations of requests that are one script, or begin with a script that mostly suffices. A
thread calls these without a coroutine."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from .binding import RedisBinding
from .caller import Caller
from .statuses import Reply, is_refusal, outcome

R = TypeVar("R")
P = TypeVar("P")


@dataclass(frozen=True)
class OneScript(Generic[R, P]):
    """The implementation of a request that is one script. ``value`` makes a reply of the script's
    reply, unless this is only a status that refuses the request."""

    op: str
    args: Callable[[RedisBinding, R], tuple[Any, ...]]
    value: Callable[[R, Reply], P]
    #: Whether a list in its reply has the tickets of waiters to wake.
    rings: bool = True

    async def __call__(self, caller: Caller, request: R, end: float | None) -> P:
        reply = await caller.script(self.op, self.args(caller.binding, request), end)
        if self.rings and (bells := bells_in(reply)):
            await caller.script("ring", bells)
        return self.read(request, reply)

    def read(self, request: R, reply: Reply) -> P:
        found: P = outcome(reply) if is_refusal(reply) else self.value(request, reply)
        return found


class PlainRead(NamedTuple):
    """A packed command that only reads, and the script that is called behind it, whose reply
    decides whether the reply to the command counts."""

    command: bytes
    op: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class ReadFirst(Generic[R, P]):
    """The implementation of a request that is one script, of whose reply ``read`` makes a reply.
    ``script`` makes the call of it. In a thread, ``plain`` comes first, if it is not None: ``join``
    makes a reply of the replies to the command and to the script behind it, or None when these do
    not count. Then the request goes on as if they had not been sent."""

    script: Callable[[RedisBinding, R], tuple[str, tuple[Any, ...]]]
    read: Callable[[R, Reply], P]
    plain: Callable[[RedisBinding, R], PlainRead | None]
    join: Callable[[RedisBinding, R, Any, Reply], P | None]

    async def __call__(self, caller: Caller, request: R, end: float | None) -> P:
        return self.read(request, await caller.script(*self.script(caller.binding, request), end))


@dataclass(frozen=True)
class FirstScript(Generic[R, P]):
    """The implementation of a request that is mostly one script. ``first`` makes the call of that
    script, or None to begin with ``rest``; ``read`` makes a reply of its reply, or None if that
    does not suffice. Then ``rest`` goes on, with the script's reply, None when it was not called.
    """

    first: Callable[[RedisBinding, R], tuple[str, tuple[Any, ...]] | None]
    read: Callable[[R, Reply], P | None]
    rest: Callable[[Caller, R, float | None, Reply | None], Coroutine[Any, Any, P]]

    async def __call__(self, caller: Caller, request: R, end: float | None) -> P:
        reply = None
        if caller.waiter is None:
            script = self.first(caller.binding, request)
            if script is not None:
                reply = await caller.script(*script, end)
                found = self.read(request, reply)
                if found is not None:
                    return found
        return await self.rest(caller, request, end, reply)


def bells_in(reply: Reply) -> tuple[str, ...]:
    """Return the tickets of the waiters that the reply of a script of a queue of tasks has to be
    woken."""
    if len(reply) < 2 or type(reply[1]) is not list:
        return ()
    return tuple(bell.decode() for bell in reply[1])


def fields(binding: RedisBinding, request: Any) -> tuple[Any, ...]:
    """Return the fields of a request as the arguments of its script."""
    return tuple(request)


def only_status(request: object, reply: Reply) -> Any:
    """Read the reply of a script that is only a status."""
    return outcome(reply)


def only_list(request: object, reply: Reply) -> list[bytes]:
    """Read the reply of a script that is a status and a list."""
    return list(reply[1])


def plain(
    op: str,
    value: Callable[[Any, Reply], Any] = only_status,
    args: Callable[[RedisBinding, Any], tuple[Any, ...]] = fields,
) -> OneScript[Any, Any]:
    """Make the implementation of a request that wakes no waiter."""
    return OneScript(op, args, value, rings=False)
