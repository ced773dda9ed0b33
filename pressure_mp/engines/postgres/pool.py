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
from .role_settings import check_role, only_reads
from .schema import VERSION
from .statements import Statement, versions
from .wire import BlockingWire, Row, Wire

T = TypeVar("T")

#: Seconds to connect, unless the caller has less.
_CONNECT_TIMEOUT = 5.0
#: Seconds after which an idle connection is checked before it is used.
_IDLE_CHECK = 0.02


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
            if isinstance(error, ReadOnly) and self._only_reads:
                raise only_reads(self.address.url) from None
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
                self._only_reads = await check_role(wire, address.url, limit)
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
                raise only_reads(self.address.url) from None
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
