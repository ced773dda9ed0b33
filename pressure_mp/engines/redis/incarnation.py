"""What is kept beside a queue is that queue's, and not that of a former one of its name.

Scripts that believe what is kept refuse while it may be a former queue's; see the Lua files
``prelude/incarnation`` and ``queue/adopt``. Then the latter is run, and the call is made again.
"""

from __future__ import annotations

from typing import Any

from .binding import RedisBinding
from .loading import exchange
from .refusals import translate
from .wire import Carrier


def is_strange(reply: Any) -> bool:
    """Whether a script refused, and did nothing, for that reason."""
    return type(reply) is not list and str(reply).startswith("ADOPT ")


async def adopt(wire: Carrier, binding: RedisBinding, limit: float | None) -> None:
    """Remove what is a former queue's, and let what is kept from now on be this one's."""
    command = binding.commands["adopt"].pack((), wire.id, wire.lane, b"")
    reply = await exchange(wire, binding, "adopt", command, limit)
    if type(reply) is not list:
        raise await translate(reply, binding, "adopt", (), wire)
