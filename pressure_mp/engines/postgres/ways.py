"""How a request is made of the schema's functions, and what their replies are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..contract.replies import Outcome
from .packing import Part

R = TypeVar("R")


class Reply(NamedTuple):
    """What a function replied: a status, what there is to say, and bytes."""

    status: str
    info: Any
    items: list[bytes]


class Asked(NamedTuple):
    """What a function is told: a name for what is to be done, arguments, and bytes."""

    op: str
    args: dict[str, Any]
    items: Sequence[Part] = ()
    keys: Sequence[Part] = ()


class Way(NamedTuple):
    """How one type of request is done.

    ``ask`` makes the call from the request and the queue's discipline; ``read`` makes the reply
    from the request and the rows. A request that ``reads`` changes nothing; ``once`` marks a
    request whose effect is not the same when it is done twice; ``takes`` one that takes items for
    good.
    """

    ask: Callable[[Any, str], Asked]
    read: Callable[[Any, Reply], Any]
    reads: bool = False
    once: bool = True
    takes: bool = False


#: By the types of the requests. The modules called ``…_ways`` fill it.
ways: dict[type, Way] = {}


def does(
    kind: type[R],
    ask: Callable[[R, str], Asked],
    read: Callable[[R, Reply], Any],
    *,
    reads: bool = False,
    once: bool = True,
    takes: bool = False,
) -> None:
    """Note how requests of this type are done."""
    assert kind not in ways, f"there are two ways to do {kind.__name__}"
    ways[kind] = Way(ask, read, reads, once, takes)


#: The statuses that are an outcome, and nothing else.
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def outcome(request: Any, reply: Reply) -> Outcome:
    """The outcome that a status is."""
    return _OUTCOMES[reply.status]


def number(request: Any, reply: Reply) -> Any:
    """A number, unless it is an outcome."""
    return reply.info if reply.status == "number" else _OUTCOMES[reply.status]


def flags(**said: bool) -> dict[str, Any]:
    """Arguments of which those are there that are so."""
    return {name: True for name, is_so in said.items() if is_so}


def given(**said: Any) -> dict[str, Any]:
    """Arguments of which those are there that are not None."""
    return {name: value for name, value in said.items() if value is not None}


def same(op: str) -> Callable[[Any, str], Asked]:
    """What a request is asked by that has no arguments."""
    return lambda request, discipline: Asked(op, {})
