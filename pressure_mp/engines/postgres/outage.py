"""Retries of one call to a database, which may have been made before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ...exceptions import BrokerUnavailable
from ..contract.session import Options
from ..retries import Connections, Retries, patience
from .errors import ConnectionLost, MadeBefore
from .statements import Statement
from .wire import Row

#: A statement, and its parameters.
Call = tuple[Statement, Sequence["bytes | None"]]


class Failed(NamedTuple):
    """A call that its caller tried once: its exception, and the time of the try."""

    error: BrokerUnavailable | MadeBefore
    tried: float


class Calls(Connections, Protocol):
    """Makes calls, see :class:`~.pool.Pool`."""

    async def execute(
        self, statement: Statement, params: Sequence[bytes | None], timeout: float | None
    ) -> list[Row]: ...


async def persist(
    pool: Calls,
    options: Options,
    end: float | None,
    call: Callable[[bool], Call],
    settles: bool = False,
    failed: Failed | None = None,
) -> list[Row]:
    """Make a call until there is a reply: over new connections, when the one in use is lost.

    The argument of ``call`` is whether the same call may have been made before. A call that was
    never sent is tried until ``end`` or for ``SHORTEST_TRY`` seconds; a call that was sent, or that
    ``settles`` a task, for ``reconnect`` seconds. ``failed`` is the first try, if there was one.
    Raises BrokerUnavailable when the time is over.
    """
    retries = Retries(pool, options, end, None if failed is None else failed.tried)
    retries.must_finish, again = settles, False
    while True:
        try:
            if failed is not None:
                first, failed = failed.error, None
                raise first
            limit = patience(retries.until, None, options.until)
            return await pool.execute(*call(again), limit)
        except MadeBefore:
            again = retries.must_finish = True
        except BrokerUnavailable as error:
            if isinstance(error, ConnectionLost):
                again = retries.must_finish = True
            if not await retries.pause(error):
                raise
