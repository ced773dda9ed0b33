"""Tell the keys beside a queue from the keys of a former queue of its name.

Scripts that use these keys refuse while they may be a former queue's; see the Lua files
``prelude/incarnation`` and ``queue/adopt``. Then ``adopt`` is run, and the call is made again.
"""

from __future__ import annotations

from typing import Any

from .binding import RedisBinding
from .loading import exchange
from .refusals import translate
from .wire import Carrier


def must_adopt(reply: Any) -> bool:
    """Tell whether a script refused, and did nothing, because keys may be a former queue's."""
    return type(reply) is not list and str(reply).startswith("ADOPT ")


async def adopt(wire: Carrier, binding: RedisBinding, limit: float | None) -> None:
    """Remove the keys of a former queue, and mark the keys from now on as this queue's."""
    command = binding.commands["adopt"].pack((), wire.id, wire.lane, b"")
    reply = await exchange(wire, binding, "adopt", command, limit)
    if type(reply) is not list:
        raise await translate(reply, binding, "adopt", (), wire)
