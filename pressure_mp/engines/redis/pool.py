"""Pools of idle connections, which the next operations use."""

from __future__ import annotations

import logging
import math
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ...exceptions import BrokerError, PressureError
from . import eviction
from .connecting import unavailable
from .errors import NotDone
from .routes import Route
from .wire import Carrier, Node, Wire

T = TypeVar("T")

#: Seconds after which an idle connection is checked before it is used.
_IDLE_CHECK = 1.0
#: The shortest time for a server to answer, in seconds, however long it took to find it.
SHORTEST = 0.01
#: Seconds from one line of the log about an outage to the next.
_INTERVAL = 60.0

_log = logging.getLogger("pressure_mp")


class Pool:
    """Connections over one route. It never waits for a connection to be free: it opens another one,
    so there are as many as operations were ever in progress at once."""

    def __init__(self, route: Route) -> None:
        self.address = route.address
        #: Seconds after which a server that does not answer is given up; None for never.
        self.silence = route.silence
        self._route = route
        self._all: weakref.WeakSet[Wire] = weakref.WeakSet()
        #: Whether this pool ever had a connection.
        self.was_connected = False
        #: When the log last had a line about an outage that lasts, on the monotonic clock.
        self._told = -math.inf
        self._refuses = False  # the last connection was lost since the server refused a call

    def idle(self, slot: int) -> Wire | None:
        """Take the connection to the slot's server that was idle for the shortest time, if there is
        one and the server is known without asking."""
        node = self._route.known(slot)
        return self._idle(node) if node is not None else None

    async def checkout(self, slot: int, timeout: float | None = None) -> Wire:
        """Take the connection to the slot's server that was idle for the shortest time, or open a
        new one.

        ``timeout`` is in seconds: for finding the server, and the rest of them for each step of
        connecting to it. Raises BrokerUnavailable.
        """
        end = None if timeout is None else time.monotonic() + timeout
        node = await self._route.node(slot, timeout)
        wire = self._idle(node)
        if wire is None:
            if end is not None:
                timeout = max(end - time.monotonic(), SHORTEST)
            wire = await self.open(node, timeout)
        return wire

    async def open(self, node: Node, timeout: float | None) -> Wire:
        wire = await self._route.open(node, timeout)
        self.was_connected = True
        if not self._refuses:
            self._told = -math.inf
        self._all.add(wire)
        return wire

    async def slots(self, timeout: float | None) -> list[int]:
        """List one slot of each server that has queues; ``timeout`` is as in :meth:`checkout`."""
        return await self._route.slots(timeout)

    @staticmethod
    def _idle(node: Node) -> Wire | None:
        idle = node.idle
        if len(idle) > 1:
            _finish_unread_calls(idle)
        while idle:
            try:
                wire = idle.pop()
            except IndexError:  # another thread was faster
                break
            now = time.monotonic()
            if now - wire.used_at < _IDLE_CHECK or not wire.is_stale():
                wire.used_at = now
                return wire
            wire.close()
            eviction.forget(node.address)
        return None

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds, in the way of the users of this pool."""
        time.sleep(seconds)

    def checkin(self, wire: Wire) -> None:
        """Put a connection back that is idle again: no reply is outstanding but that of an unread
        call."""
        idle = wire.node.idle
        idle += (wire,)  # not a call, after which an exception could come: see interrupts.py

    def lose(self, wire: Carrier, error: BaseException) -> None:
        """Close a connection after ``error``. After an error of the connection, or of a server that
        cannot work, the next checkout searches for the server again."""
        wire.give_up()
        if isinstance(error, OSError):
            self._refuses = isinstance(error, NotDone)
            eviction.forget(wire.node.address)
            self._route.doubt(wire.node, error)

    def drop(self, wire: Carrier) -> None:
        """Note that no further call is made in the lane of this connection."""
        wire.lane.drop()

    @asynccontextmanager
    async def borrowed(self, slot: int, timeout: float | None = None) -> AsyncIterator[Carrier]:
        """Borrow a connection for a few commands, and close it if one fails. ``timeout`` is as in
        :meth:`checkout`."""
        wire = await self.lend(slot, timeout)
        try:
            yield wire
        except BrokerError:  # an error reply: the connection is as good as before
            self.take_in(wire)
            raise
        except BaseException as error:
            self.lose(wire, error)
            raise self.translate(error) from error
        self.take_in(wire)

    async def lend(self, slot: int, timeout: float | None = None) -> Carrier:
        """Lend a connection or a channel for a few quick calls; ``timeout`` is as in
        :meth:`checkout`."""
        return await self.checkout(slot, timeout)

    def take_in(self, wire: Carrier) -> None:
        """Take a lent connection or channel back."""
        assert isinstance(wire, Wire)
        self.checkin(wire)

    async def uninterrupted(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, such as giving roles back, whatever cancels the caller."""
        return await coroutine

    def translate(self, error: BaseException) -> BaseException:
        """Translate an error of a connection into the error that a caller gets."""
        if isinstance(error, OSError) and not isinstance(error, PressureError):
            return unavailable(self.address, error)
        return error

    def tell(self, error: OSError, left: float) -> None:
        """Log, once a minute in an outage, why it takes so long, and how long it may take."""
        now = time.monotonic()
        if now - self._told >= _INTERVAL:
            self._told = now
            _log.warning(
                "trying for another %.0f s to reach the broker: %s", left, self.translate(error)
            )

    def lanes(self) -> list[bytes]:
        return [wire.lane.id for wire in list(self._all)]

    def after_fork(self) -> None:
        """Close all connections in a forked child, also those in use by other threads of the
        parent: as long as the child has a socket, the server would not notice the death of the
        parent."""
        for wire in list(self._all):
            wire.close()
        self._all.clear()
        for node in self._route.nodes():
            node.hang_up()
            node.health.after_fork()

    def close(self, kept: int = 0) -> None:
        """Close idle connections, except so many to each server."""
        for node in self._route.nodes():
            node.hang_up(kept)


def _all_but_the_last(idle: deque[Wire]) -> tuple[Wire, ...]:
    while True:
        try:
            return tuple(idle)[:-1]
        except RuntimeError:  # a finalizer, or another thread, took a connection meanwhile
            continue


def _finish_unread_calls(idle: deque[Wire]) -> None:
    """Finish the unread calls of the connections that are not used next."""
    for wire in _all_but_the_last(idle):
        if wire.unread is None:
            continue
        try:
            idle.remove(wire)
        except ValueError:  # another thread uses it, and reads the reply
            continue
        try:
            is_stale = wire.is_stale()
        except BaseException:
            wire.give_up()
            raise
        if is_stale:
            wire.close()
        else:
            idle.appendleft(wire)
