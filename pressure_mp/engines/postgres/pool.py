"""The pool of idle connections, which the next calls use."""

from __future__ import annotations

import secrets
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from ...exceptions import BrokerError
from .address import PostgresAddress
from .errors import ConnectionLost, NotInstalled, NotNow, NotPrepared, ReadOnly
from .packing import load
from .schema import VERSION
from .statements import Statement, versions
from .wire import BlockingWire, Row, Wire

T = TypeVar("T")

#: Seconds to connect, unless the caller has less.
_CONNECT_TIMEOUT = 5.0
#: Seconds after which an idle connection is checked before it is used.
_IDLE_CHECK = 0.02
#: Asks for the settings of a role's sessions that this package cannot set itself.
_ASK_SETTINGS = Statement(
    b"check_role",
    b"SELECT current_setting('transaction_isolation'), "
    b"CASE WHEN current_setting('default_transaction_read_only') = 'on' THEN (SELECT source "
    b"FROM pg_settings WHERE name = 'default_transaction_read_only') END",
    (),
)
#: The sources of a setting of the whole server. It may be changed back soon, and calls wait for
#: that.
_OF_THE_SERVER = (b"configuration file", b"command line")


class Lane:
    """Numbered calls, made one after the other: a call that comes twice is done once."""

    __slots__ = ("id", "number")

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)
        self.number = 0


class Pool:
    """The connections of all threads: as many as calls were ever under way at once."""

    kind_of_wire: type[Wire] = BlockingWire

    def __init__(self, address: PostgresAddress) -> None:
        self.address = address
        self._conninfo = address.conninfo()
        self._all: weakref.WeakSet[Wire] = weakref.WeakSet()
        self._idle: list[tuple[Wire, float]] = []
        self._lanes: list[Lane] = []
        self._is_checked = False
        #: Whether the role's sessions may only read, by the last check.
        self._only_reads = False
        self.was_connected = False

    def lane(self) -> Lane:
        """Take a lane without a call."""
        try:
            return self._lanes.pop()
        except IndexError:
            return Lane()

    def take_lane_in(self, lane: Lane) -> None:
        """Take a lane back: its last call is over, and will not be repeated."""
        self._lanes += (lane,)

    def lanes(self) -> list[str]:
        return [lane.id for lane in list(self._lanes)]

    def execute(
        self, statement: Statement, params: Sequence[bytes | None], timeout: float | None
    ) -> Coroutine[Any, Any, list[Row]]:
        """Make a call over an idle connection, or a new one. ``timeout`` is in seconds. Raises as
        :meth:`Wire.execute` does; NotNow if nothing was sent."""
        return self._over_one(lambda wire: wire.execute(statement, params, timeout), timeout)

    async def _over_one(self, execute: Callable[[Wire], Awaitable[T]], timeout: float | None) -> T:
        wire = self._usable()
        is_new = wire is None
        if wire is None:
            try:
                wire = await self.connect(timeout)
            except ConnectionLost as error:
                raise NotNow(str(error)) from None
        try:
            found = await execute(wire)
        except (BrokerError, NotNow) as error:
            if isinstance(error, (NotInstalled, ReadOnly)):
                self._is_checked = False  # the next check names the problem, or installs it
            if isinstance(error, (NotNow, NotInstalled, NotPrepared)) or not wire.is_usable:
                wire.close()
                self.close_idle()
            else:
                self._keep(wire)
            # A connection that was open before may be of another setting than the next ones.
            if isinstance(error, ReadOnly) and self._only_reads and is_new:
                raise _only_reads(self.address.url) from None
            raise
        except ConnectionLost:
            self.close_idle()  # these are most likely broken, too
            raise
        except BaseException:
            wire.close()
            raise
        self._keep(wire)
        return found

    def _usable(self) -> Wire | None:
        idle = self._idle
        while idle:
            try:
                wire, used_at = idle.pop()
            except IndexError:  # another thread was faster
                break
            if time.monotonic() - used_at < _IDLE_CHECK or wire.is_usable:
                return wire
            wire.close()
        return None

    def _keep(self, wire: Wire) -> None:
        if wire.pgconn is not None:
            self._idle += ((wire, time.monotonic()),)

    async def connect(self, timeout: float | None, conninfo: str | None = None) -> Wire:
        """Open a new connection."""
        address = self.address
        wire = self.kind_of_wire(address.url, address.schema, address.prepare)
        limit = _CONNECT_TIMEOUT if timeout is None else min(timeout, _CONNECT_TIMEOUT)
        await wire.connect(conninfo or self._conninfo, limit)
        self._all.add(wire)
        self.was_connected = True
        if not self._is_checked:
            try:
                self._only_reads = await _check_role(wire, address.url, limit)
                await self._check(wire, limit)
            except BaseException:
                wire.close()
                raise
            self._is_checked = True
        return wire

    async def _check(self, wire: Wire, limit: float) -> None:
        """Check that the schema is of this version, or serves it, and install it if the address
        says so. Raises NotInstalled."""
        schema = self.address.schema
        try:
            found, serves = load((await wire.execute(versions(schema), (), limit))[0][0])
        except NotInstalled:
            if not self.address.create:
                raise
            if self._only_reads:
                raise _only_reads(self.address.url) from None
            from .installing import install_over

            await install_over(wire, schema)
            return
        if not serves <= VERSION <= found:
            raise NotInstalled(
                f"the schema {schema} at {self.address.url} is of version {found}, and this "
                f"package needs {VERSION}: "
                + (
                    "run pressure-mp postgres upgrade --url URL"
                    if found < VERSION
                    else "use the package that installed it"
                )
            )

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds, in the way of the users of this pool."""
        time.sleep(seconds)

    def close_idle(self, kept: int = 0) -> None:
        """Close the connections without a call, except so many."""
        while len(self._idle) > kept:
            with suppress(IndexError):
                self._idle.pop()[0].close()

    def abandon(self) -> None:
        """Close all connections; in a forked child, drop the parent's."""
        for wire in list(self._all):
            wire.close()

    def after_fork(self) -> None:
        """Drop the parent's connections and lanes, in a forked child."""
        self.abandon()
        self.__init__(self.address)  # type: ignore[misc]


async def _check_role(wire: Wire, shown: str, timeout: float) -> bool:
    """Return whether the role, the database or the URL set the session to only read. Raises
    BrokerError if its transactions are not READ COMMITTED."""
    isolation, source = (await wire.execute(_ASK_SETTINGS, (), timeout))[0]
    found = (isolation or b"").decode()
    if found not in ("read committed", "read uncommitted"):
        raise BrokerError(
            f"the database at {shown} makes the transactions of this session {found.upper()}, and "
            "queues need READ COMMITTED: set default_transaction_isolation so for the role. This "
            "package sets it itself, unless a pooler or the URL's options= prevent that"
        )
    return source is not None and source not in _OF_THE_SERVER


def _only_reads(shown: str) -> BrokerError:
    """Make the error for a session that was set to only read."""
    return BrokerError(
        f"the database at {shown} lets this session only read: default_transaction_read_only is on "
        "for the role, for the database, or in the URL. Set it to off there, or use another role; "
        "nothing was done"
    )
