"""Reply to the requests that an engine does not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...exceptions import NotSupportedError
from .brokers import DamagedPage, FindDamaged, MayGet, RenewAll
from .items import EndPrefetch, HandedOut, Prefetch
from .queues import Unlock
from .replies import Outcome, Shared
from .requests import LEVELS

#: The default replies to optional requests: an engine does one itself only if it can do better.
OPTIONAL: dict[type, Callable[[Any], Any]] = {
    # There are no roles, and a queue is not in several keys, of which one can be lost.
    Unlock: lambda request: "",
    FindDamaged: lambda request: DamagedPage([], ""),
    # Each queue is asked by a call of its own.
    RenewAll: lambda request: [None] * len(request.queues),
    MayGet: lambda request: [None] * len(request.queues),
}


def reply_alone(request: object) -> Shared | HandedOut | None:
    """Reply to a reader that wants to reserve items, for an engine that reserves none; None to
    other requests."""
    if isinstance(request, Prefetch) and request.alone:
        return Outcome.SHARED
    return HandedOut(0) if isinstance(request, EndPrefetch) and request.alone else None


def default_reply(request: object) -> Any:
    """Reply to a request for which an engine has no function. Raises NotSupportedError
    unless the request is optional."""
    kind = type(request)
    reply = OPTIONAL.get(kind)
    if reply is None:
        level = next(level for level, kinds in LEVELS.items() if kind in kinds)
        raise NotSupportedError(
            f"{kind.__name__} needs {level.value!r}, a level that the engine of this broker does "
            "not have: use a broker at redis:// or postgresql://"
        )
    return reply(request)
