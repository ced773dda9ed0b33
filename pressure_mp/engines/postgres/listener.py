"""The one connection of a process that hears who may go on, and the thread that reads it."""

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
from .notifications import connect_to_hear, hear, wire_to_hear
from .wire import BlockingWire, Wire

#: Seconds until the next try, when one failed.
_PAUSE = 5.0
#: Seconds for which one who waits gives the first try, before it looks by itself.
_PATIENCE = 1.0

_log = logging.getLogger("pressure_mp")


class Listener:
    """Wakes the sessions of this process that wait.

    While it lives the server holds an advisory lock of its number for it: so others see at once
    when this process is killed, and do not wait for those who waited in it.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
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
        """Whether to wait for one makes sense."""
        return self._address.listen != "no" and time.monotonic() >= self._not_before

    @property
    def patience(self) -> float:
        """For how many seconds one who waits gives what was started the time to listen."""
        return 0.0 if self._has_failed else max(self._late - time.monotonic(), 0.0)

    def register(self, session: str, ring: Callable[[], None]) -> None:
        """``ring`` is called from another thread when the session may go on."""
        self._bells[session] = ring

    def forget(self, session: str) -> None:
        """The session waits no longer."""
        self._bells.pop(session, None)

    def ring(self, session: str) -> None:
        """A session may go on, as far as it is one of this process that waits."""
        ring = self._bells.get(session)
        if ring is not None:
            ring()

    def start(self) -> Future[int | None]:
        """What is done when it listens, or cannot. Its number, or None."""
        with self._lock:
            if self._starting is None:
                self._starting = Future()
                self._late = time.monotonic() + _PATIENCE
                self._starting.set_running_or_notify_cancel()  # one who waits for it cancels itself
                thread = threading.Thread(
                    target=self._run, args=(self._starting,), name="pressure_mp-listener"
                )
                thread.daemon = True
                thread.start()
            return self._starting

    def _run(self, starting: Future[int | None]) -> None:
        number = secrets.randbelow(2**62) + 1
        wire = wire_to_hear(BlockingWire, self._address)
        ends, self._stop = os.pipe()
        try:
            try:
                finish(connect_to_hear(wire, self._address))
                finish(hear(wire, number))
            except PressureError as error:
                self._fail(error)
                return
            self._has_failed = False
            self._wire, self.number = wire, number
            self._ring_all()  # for those who did not have the patience
            starting.set_result(number)
            self._listen(wire, ends)
        finally:
            self.number = self._wire = None
            wire.close()
            with self._lock:
                os.close(ends)
                if self._stop is not None:
                    os.close(self._stop)
                self._stop = self._starting = None
            if not starting.done():
                starting.set_result(None)
            self._ring_all()  # each calls again, and has another listener then

    def _fail(self, error: PressureError) -> None:
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
            self._tell(pgconn)
            if any(fd == ends for fd, _ in poll.poll()):
                return
            try:
                pgconn.consume_input()
            except Exception:  # whatever libpq says: it is not heard any more
                return

    def _tell(self, pgconn: Any) -> None:
        while (notice := pgconn.notifies()) is not None:
            self.ring(notice.extra.decode())

    def close(self) -> None:
        """Listen no longer, until somebody waits again."""
        with self._lock:
            stop, self._stop = self._stop, None
            if stop is not None:
                os.close(stop)  # the thread sees the end of the pipe

    def after_fork(self) -> None:
        """In a forked child: there is no such thread; the connection is the parent's."""
        wire = self._wire
        if wire is not None:
            wire.close()
        self.__init__(self._address)  # type: ignore[misc]
