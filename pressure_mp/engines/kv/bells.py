"""The bells of a process: a datagram socket, on which other processes wake its sessions."""

from __future__ import annotations

import hashlib
import socket
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from ...identity import processes
from ...identity.client import process_of
from .. import wake_sockets


class Wakes(Protocol):
    """A session that waits."""

    def wake(self) -> None: ...


def _name(process: str) -> str:
    return hashlib.sha256(process.encode()).hexdigest()[:24]


class Bells:
    """The sessions of this process that wait, at whatever store, and the socket on which they are
    rung."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakValueDictionary[str, Wakes] = weakref.WeakValueDictionary()
        self._own: socket.socket | None = None

    def note(self, ticket: str, session: Wakes) -> None:
        """Have a session woken that is about to wait."""
        self._sessions[ticket] = session
        if self._own is None:
            with self._lock:
                if self._own is None:
                    self._own = self._listen()

    def forget(self, ticket: str) -> None:
        self._sessions.pop(ticket, None)

    def _listen(self) -> socket.socket:
        own = wake_sockets.listen(_name(processes.incarnation()))
        own.setblocking(True)
        threading.Thread(target=self._run, args=(own,), daemon=True, name="pressure bells").start()
        return own

    def _run(self, own: socket.socket) -> None:
        with own:
            while ticket := own.recv(512).decode():  # nothing comes when it was shut down
                self._ring(ticket)

    def _ring(self, ticket: str) -> None:
        found = self._sessions.get(ticket)
        if found is not None:
            found.wake()

    def ring(self, tickets: Iterable[str]) -> None:
        """Wake sessions of this process and of others. A session that no datagram reaches looks by
        itself."""
        for ticket in dict.fromkeys(tickets):
            process = process_of(ticket)
            if process == processes.incarnation():
                self._ring(ticket)
                continue
            with suppress(OSError):
                wake_sockets.wake(_name(process), ticket.encode())

    def after_fork(self) -> None:
        """Forget the parent's sessions and sockets, in a forked child."""
        if self._own is not None:
            self._own.close()
        self._begin()

    def close(self) -> None:
        """End the thread, if no session waits."""
        if self._sessions:
            return
        own, self._own = self._own, None
        if own is not None:
            wake_sockets.remove(_name(processes.incarnation()))
            with suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)


#: Of this process: the tickets of its sessions say no more than the process.
of_process = Bells()
