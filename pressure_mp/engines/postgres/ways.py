"""Ways: the calls of the schema's functions for requests, and the replies that they make of
rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..contract.forwarding import Forward, Forwarded, ForwardReply, NotSettled
from ..contract.items import Added
from ..contract.replies import Outcome
from ..contract.task_records import StoredTask
from .packing import Part

R = TypeVar("R")


class Reply(NamedTuple):
    """The reply of a function: a status, values, and bytes."""

    status: str
    info: Any
    items: list[bytes]


class Asked(NamedTuple):
    """The call of a function: the name of an operation, arguments, and bytes. ``settles`` is the
    call that settles a delivery of another queue in the same step; the prefix, kind, name and
    discipline of that queue are in ``source``."""

    op: str
    args: dict[str, Any]
    items: Sequence[Part] = ()
    keys: Sequence[Part] = ()
    settles: Asked | None = None
    source: tuple[str, ...] = ()


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


def _ask_forward(request: Forward, discipline: str) -> Asked:
    source, settle, put = request
    settling = ways[type(settle)].ask(settle, source.discipline)
    queue = source.prefix, source.kind, source.name, source.discipline
    putting = ways[type(put)].ask(put, discipline)
    return putting._replace(settles=settling, source=queue)


def _read_forward(request: Forward, reply: Reply) -> ForwardReply:
    read_put, read_settled = ways[type(request.put)].read, ways[type(request.settle)].read
    status, info, items = reply
    if status == "refused":
        return NotSettled(read_settled(request.settle, Reply(info["status"], info["info"], items)))
    if status != "forwarded":
        found: ForwardReply = read_put(request.put, reply)
        return found
    number = info["number"]
    put = read_put(request.put, Reply(info["put"], info["info"], items[:number]))
    settled = read_settled(request.settle, Reply(info["settled"], info["told"], items[number:]))
    ids = [] if isinstance(put, Added) else put
    return Forwarded(ids, settled if isinstance(settled, StoredTask) else None)


does(Forward, _ask_forward, _read_forward)
