"""How a delivery is settled by a put on another queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..effects import Operation
from ..exceptions import PressureError

if TYPE_CHECKING:  # a queue need not load the requests of every other kind of queue
    from ..engines.contract.forwarding import Settlement
    from ..engines.contract.task_records import StoredTask

Made = TypeVar("Made")


class Settling(NamedTuple):
    """How a delivery is settled."""

    #: Returns the request that settles it. May store a large result before.
    request: Callable[[], Operation[Settlement]]
    #: Returns the error for such a reply to the request; None if the request is to be made anew.
    refusal: Callable[[Any], PressureError | None]
    #: Notes that it is settled.
    done: Callable[[StoredTask | None], None]


def ready_made(request: Made) -> Operation[Made]:
    """Return a request that needs no other one before it, as :attr:`Settling.request` does."""
    yield from ()
    return request
