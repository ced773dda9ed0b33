"""Detect a silent connection: something on the way drops its bytes, and the client sees no end.

The server answers other connections while a call waits for a lock, so its answer there does not
show that the call is lost. A new connection asks instead what the backend of the first one waits
for (``pg_stat_activity``, the PostgreSQL manual, "The Cumulative Statistics System"). If a backend
waits for its client while the client waits for a reply, bytes between them were dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...exceptions import PressureError
from .statements import Statement

#: Seconds to connect, and for the answer.
_LIMIT = 5.0
_WAITS_FOR_CLIENT = Statement(
    b"", b"SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Client'", (0,)
)


class Asking(Protocol):
    """A wire, see :class:`~.wire.Wire`."""

    async def connect(self, conninfo: str, timeout: float) -> None: ...

    async def execute(
        self, statement: Statement, params: Sequence[bytes | None], timeout: float | None
    ) -> list[Any]: ...

    def close(self) -> None: ...


async def waits_for_client(backend: int, other: Asking, conninfo: str) -> bool:
    """Tell whether a backend waits for its client. Ask over another wire, connected and closed
    here. Blocks for at most 5 s to connect, and 5 s for the answer.

    False where this is not known: a pooler that gives each transaction another backend hides it.
    """
    try:
        await other.connect(conninfo, _LIMIT)
        return bool(await other.execute(_WAITS_FOR_CLIENT, (b"%d" % backend,), _LIMIT))
    except PressureError:
        return False
    finally:
        other.close()
