"""How a delivery is settled by a put on another queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..effects import Operation
from ..exceptions import PressureError

if TYPE_CHECKING:  # a queue need not load the requests of every other kind of queue
    from ..engines.contract.items import Acknowledge
    from ..engines.contract.task_records import StoredTask
    from ..engines.contract.tasks import AckTask


class Settling(NamedTuple):
    """How a delivery is settled."""

    #: Returns the request that settles it. May store a large result before.
    request: Callable[[], Operation[Acknowledge | AckTask]]
    #: Returns the error for such a reply to the request; None if the request is to be made anew.
    refusal: Callable[[Any], PressureError | None]
    #: Notes that it is settled.
    done: Callable[[StoredTask | None], None]
