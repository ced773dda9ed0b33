"""Change two queues in memory together."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from ..contract.forwarding import Forward, ForwardReply
from ..requests import forwarding
from ..requests.dispatch import Pair
from ..requests.line import Caller


class Locked(Protocol):
    """A queue, and the lock that a call to it has."""

    lock: threading.Lock
    place: Any


def forward(target: Locked, request: Forward, caller: Caller) -> ForwardReply:
    source: Locked = request.source.queue
    pair = Pair(source.place, target.place)
    if source is target:
        with target.lock:
            return forwarding.forward(pair, request, caller)
    first, second = sorted((source, target), key=id)  # any two calls in the same order
    with first.lock, second.lock:
        return forwarding.forward(pair, request, caller)
