"""Ways: the calls of the schema's functions for requests, and the replies that they make of
rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..contract.replies import Outcome
from .packing import Part

R = TypeVar("R")


class Reply(NamedTuple):
    """The reply of a function: a status, values, and bytes."""

    status: str
    info: Any
    items: list[bytes]


class Asked(NamedTuple):
    """The call of a function: the name of an operation, arguments, and bytes; and the call at
    another queue that is made in the same step."""

    op: str
    args: dict[str, Any]
    items: Sequence[Part] = ()
    keys: Sequence[Part] = ()
    settles: Settles | None = None


class Settles(NamedTuple):
    """A call at another queue, which settles a delivery there."""

    prefix: str
    kind: str
    name: str
    discipline: str
    asked: Asked


class Way(NamedTuple):
    """The way in which one type of request is done.

    ``ask`` makes the call from the request and the queue's discipline; ``read`` makes the reply
    from the request and the rows. A request that ``reads`` changes nothing, unless transitions of
    tasks are due; ``once`` marks a request whose effect is not the same when it is done twice;
    ``takes`` one that takes items for good.
    """

    ask: Callable[[Any, str], Asked]
    read: Callable[[Any, Reply], Any]
    reads: bool = False
    once: bool = True
    takes: bool = False


#: The ways by the types of requests. The modules called ``…_ways`` fill this.
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
    """Note the way of requests of this type."""
    assert kind not in ways, f"there are two ways to do {kind.__name__}"
    ways[kind] = Way(ask, read, reads, once, takes)


#: The statuses that are an outcome without values.
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def outcome(request: Any, reply: Reply) -> Outcome:
    return _OUTCOMES[reply.status]


def number(request: Any, reply: Reply) -> Any:
    """Return a number, or the outcome."""
    return reply.info if reply.status == "number" else _OUTCOMES[reply.status]


def given(**said: Any) -> dict[str, Any]:
    """Make arguments of the values that are neither None nor False."""
    return {name: value for name, value in said.items() if value is not None and value is not False}


def fields(op: str) -> Callable[[Any, str], Asked]:
    """Make the ``ask`` of a request whose fields are the arguments."""
    return lambda request, discipline: Asked(op, given(**request._asdict()))
