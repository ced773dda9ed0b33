"""Requests that are one script, or begin with one that mostly is all. A thread has no need of a
coroutine for it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from .binding import RedisBinding
from .caller import Caller
from .statuses import Reply

R = TypeVar("R")
P = TypeVar("P")


@dataclass(frozen=True)
class OneScript(Generic[R, P]):
    """What does requests that are one script, and need nothing else."""

    op: str
    args: Callable[[RedisBinding, R], tuple[Any, ...]]
    read: Callable[[R, Reply], P]
    #: Whether a list in its reply names those who are to be woken.
    rings: bool = True

    async def __call__(self, caller: Caller, request: R, end: float | None) -> P:
        reply = await caller.script(self.op, self.args(caller.binding, request), end)
        if self.rings and (bells := bells_in(reply)):
            await caller.script("ring", bells)
        return self.read(request, reply)


class PlainRead(NamedTuple):
    """A packed command that reads, and changes nothing, and the script that is called behind it:
    what the script says tells whether what was read counts."""

    command: bytes
    op: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class FirstScript(Generic[R, P]):
    """What does requests that mostly are one script. ``first`` says which, None when it is not
    known before more was done; ``read`` makes a reply of what it said, if that is all there is to
    it. Else ``rest`` goes on, with what it said, None when it was not called.

    In a thread, ``plain`` comes first, if there is one: ``join`` makes a reply of what was read and
    what the script said, None when that does not count. Then all is as if it had not been sent."""

    first: Callable[[RedisBinding, R], tuple[str, tuple[Any, ...]] | None]
    read: Callable[[R, Reply], P | None]
    rest: Callable[[Caller, R, float | None, Reply | None], Coroutine[Any, Any, P]]
    plain: Callable[[RedisBinding, R], PlainRead | None] | None = None
    join: Callable[[RedisBinding, R, Any, Reply], P | None] | None = None

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
    """Those whom the reply of a script of a queue of tasks names to be woken."""
    if len(reply) < 2 or type(reply[1]) is not list:
        return ()
    return tuple(bell.decode() for bell in reply[1])


def nothing(binding: RedisBinding, request: object) -> tuple[Any, ...]:
    """The arguments of a script that has none."""
    return ()
