"""The one connection of a process that receives notifications for its waiting sessions, and the
thread that reads it."""

from __future__ import annotations

import logging
import os
import secrets
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from ...exceptions import PressureError
from ...polling import new_poll
from ..blocking_coroutines import finish
from .address import PostgresAddress
from .notifications import connect_to_listen, listen, wire_to_listen
from .wire import BlockingWire, Wire

#: Seconds between a failed try to connect and the next one.
_PAUSE = 5.0
#: Seconds for which a waiting session waits for the first try, before it polls by itself.
_PATIENCE = 1.0

_log = logging.getLogger("pressure_mp")


class Listener:
    """Wakes the sessions of this process that wait.

    The server holds an advisory lock with the listener's number as long as its connection lives: so
    other processes see at once when this process is killed, and do not wait for its sessions.
    """

    def __init__(self, address: PostgresAddress, lost: Callable[[], None]) -> None:
        self._address = address
        #: Called when the connection is lost, before the sessions are woken.
        self._lost = lost
        self._lock = threading.RLock()
        self._starting: Future[int | None] | None = None
        self._not_before = 0.0
        self._late = 0.0
        self._has_failed = False
        self._bells: dict[str, Callable[[], None]] = {}
        self._stop: int | None = None
        self._wire: Wire | None = None
        #: The number of the connection, None while there is none.
        self.number: int | None = None

    @property
    def may_be_had(self) -> bool:
        """Whether a listener may start soon."""
        return self._address.listen != "no" and time.monotonic() >= self._not_before

    @property
    def patience(self) -> float:
        """The seconds for which a waiting session waits until the listener has started."""
        return 0.0 if self._has_failed else max(self._late - time.monotonic(), 0.0)

    def register(self, session: str, ring: Callable[[], None]) -> None:
        """Register a session: ``ring`` is called from another thread when it may be served."""
        self._bells[session] = ring

    def forget(self, session: str) -> None:
        self._bells.pop(session, None)

    def ring(self, session: str) -> None:
        """Wake a session, if it waits in this process."""
        ring = self._bells.get(session)
        if ring is not None:
            ring()

    def start(self) -> Future[int | None]:
        """Start the listener. Returns a future that is done when it listens, with its number, or
        cannot listen, with None."""
        with self._lock:
            if self._starting is None:
                starting: Future[int | None] = Future()
                self._starting = starting
                self._late = time.monotonic() + _PATIENCE
                # A task that waits for it, and is cancelled, does not cancel it.
                starting.set_running_or_notify_cancel()
                thread = threading.Thread(
                    target=self._run, args=(starting,), name="pressure_mp-listener"
                )
                thread.daemon = True
                try:
                    thread.start()
                except RuntimeError as error:  # there are too many: a later session starts it
                    self._fail(error)
                    self._starting = None
                    starting.set_result(None)
                    return starting
            return self._starting

    def _run(self, starting: Future[int | None]) -> None:
        number = secrets.randbelow(2**62) + 1
        wire = wire_to_listen(BlockingWire, self._address)
        ends = -1
        try:
            try:
                ends, self._stop = os.pipe()
                finish(connect_to_listen(wire, self._address))
                finish(listen(wire, number))
            except (PressureError, OSError) as error:  # also: no descriptor is left
                self._fail(error)
                return
            self._has_failed = False
            self._wire, self.number = wire, number
            self._ring_all()  # for sessions that did not wait for it
            starting.set_result(number)
            self._listen(wire, ends)
        finally:
            self.number = self._wire = None
            wire.close()
            with self._lock:
                if ends >= 0:
                    os.close(ends)
                if self._stop is not None:
                    os.close(self._stop)
                self._stop = self._starting = None
            if not starting.done():
                starting.set_result(None)
            self._ring_all()  # each session calls again, and starts another listener

    def _fail(self, error: Exception) -> None:
        self._not_before = time.monotonic() + _PAUSE
        if not self._has_failed:
            self._has_failed = True
            _log.warning(
                "clients that wait receive no notifications, and ask ten times a second: %s", error
            )

    def _ring_all(self) -> None:
        for ring in list(self._bells.values()):
            ring()

    def _listen(self, wire: Wire, ends: int) -> None:
        pgconn: Any = wire.pgconn
        poll = new_poll()
        poll.register(pgconn.socket, select.POLLIN)
        poll.register(ends, select.POLLIN)
        while True:
            while (notice := pgconn.notifies()) is not None:
                self.ring(notice.extra.decode())
            if any(fd == ends for fd, _ in poll.poll()):
                return
            try:
                pgconn.consume_input()
            except Exception:  # whatever the error of libpq is, the connection is lost
                self._lost()
                return

    def close(self) -> None:
        """Stop listening, until a session waits again."""
        with self._lock:
            stop, self._stop = self._stop, None
            if stop is not None:
                os.close(stop)  # the thread sees the end of the pipe

    def after_fork(self) -> None:
        """Forget the thread and the connection in a forked child: they are the parent's."""
        wire = self._wire
        if wire is not None:
            wire.close()
        self.__init__(self._address, self._lost)  # type: ignore[misc]
