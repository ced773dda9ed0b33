"""Idle connections, kept for the next operation."""

from __future__ import annotations

import logging
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ...exceptions import BrokerError, PressureError
from . import eviction
from .connecting import unavailable
from .routes import Route
from .wire import Carrier, Node, Wire

T = TypeVar("T")

#: A connection that was not taken for longer is looked at before it is used, in seconds.
_IDLE_CHECK = 1.0
#: So many seconds a server has to answer, whatever time was needed to find it.
SHORTEST = 0.01


_log = logging.getLogger("pressure_mp")


class Pool:
    """Connections to where a route leads. It never blocks to wait for one: it makes another,
    so there are as many as operations that were ever in progress at once."""

    def __init__(self, route: Route) -> None:
        self.address = route.address
        #: Seconds after which a server that answers nothing is given up; None for never.
        self.silence = route.silence
        self._route = route
        self._all: weakref.WeakSet[Wire] = weakref.WeakSet()
        #: Whether this pool ever had a connection.
        self.was_connected = False
        self._was_told = False  # the log, since there was last a new connection

    def idle(self, slot: int) -> Wire | None:
        """The connection to the slot's server that was idle for the shortest time, if there is one
        and it is known at once which server that is."""
        node = self._route.known(slot)
        return self._idle(node) if node is not None else None

    async def checkout(self, slot: int, timeout: float | None = None) -> Wire:
        """The connection that was idle for the shortest time, or a new one; to the slot's server.

        ``timeout`` is in seconds: for finding the server, and then for each step of connecting to
        it in what is left of them. Raises BrokerUnavailable.
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
        """A new connection."""
        wire = await self._route.open(node, timeout)
        self.was_connected, self._was_told = True, False
        self._all.add(wire)
        return wire

    async def slots(self, timeout: float | None) -> list[int]:
        """One slot of each server that has queues; ``timeout`` is as of :meth:`checkout`."""
        return await self._route.slots(timeout)

    @staticmethod
    def _idle(node: Node) -> Wire | None:
        idle = node.idle
        if len(idle) > 1:
            _hear(idle)
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
        """Wait, as the users of these connections do."""
        time.sleep(seconds)

    def checkin(self, wire: Wire) -> None:
        """The connection is idle again; no reply is outstanding but that of an unread call."""
        idle = wire.node.idle
        idle += (wire,)  # no call, behind which an exception could come: see interrupts.py

    def lose(self, wire: Carrier, error: BaseException) -> None:
        """Close a connection after ``error``; one of the connection itself, or of a server that
        cannot do its work, makes the next checkout look for the server anew."""
        wire.give_up()
        if isinstance(error, OSError):
            eviction.forget(wire.node.address)
            self._route.doubt(wire.node, error)

    def drop(self, wire: Carrier) -> None:
        """No further call is made in its lane."""
        wire.lane.drop()

    @asynccontextmanager
    async def borrowed(self, slot: int, timeout: float | None = None) -> AsyncIterator[Carrier]:
        """A connection for a few commands; closed when anything goes wrong with it. ``timeout`` is
        that of :meth:`checkout`."""
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
        """What a few quick calls can go over; ``timeout`` is that of :meth:`checkout`."""
        return await self.checkout(slot, timeout)

    def take_in(self, wire: Carrier) -> None:
        """What was lent is in nobody's use."""
        assert isinstance(wire, Wire)
        self.checkin(wire)

    async def uninterrupted(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What must be brought to its end once it is begun: giving back what is held."""
        return await coroutine

    def translate(self, error: BaseException) -> BaseException:
        """What a caller sees of an error on a connection."""
        if isinstance(error, OSError) and not isinstance(error, PressureError):
            return unavailable(self.address, error)
        return error

    def tell(self, error: OSError, left: float) -> None:
        """Tell the log, once, why it takes so long, and how long it may take."""
        if not self._was_told:
            self._was_told = True
            _log.warning(
                "trying for another %.0f s to reach the broker: %s", left, self.translate(error)
            )

    def lanes(self) -> list[bytes]:
        """The ids of the lanes of all its connections."""
        return [wire.lane.id for wire in list(self._all)]

    def after_fork(self) -> None:
        """In the child. Also what other threads of the parent were using is closed: as long as
        the child has the socket, the server would not notice the parent's death."""
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
        except RuntimeError:  # a finalizer, or another thread, took one out meanwhile
            continue


def _hear(idle: deque[Wire]) -> None:
    """What nobody has waited for over the connections that are not used next is done first."""
    for wire in _all_but_the_last(idle):
        if wire.unread is None:
            continue
        try:
            idle.remove(wire)
        except ValueError:  # another thread uses it, and hears
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
