"""The bells of a process: a datagram socket, on which other processes wake its sessions."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from ...identity import processes, shared_folder
from ...identity.client import process_of


class Wakes(Protocol):
    """A session that waits."""

    def wake(self) -> None: ...


def _path(process: str) -> str:
    name = hashlib.sha256(process.encode()).hexdigest()[:24]
    return os.path.join(shared_folder.find(make=True), f"bell-{name}")


class Bells:
    """The sessions of this process that wait, and the socket on which they are rung."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakValueDictionary[str, Wakes] = weakref.WeakValueDictionary()
        self._own: socket.socket | None = None
        self._out: socket.socket | None = None

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
        own = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = _path(processes.incarnation())
        with suppress(FileNotFoundError):
            os.unlink(path)
        own.bind(path)
        threading.Thread(target=self._run, args=(own,), daemon=True, name="pressure bells").start()
        return own

    def _run(self, own: socket.socket) -> None:
        while True:
            try:
                ticket = own.recv(512).decode()
            except OSError:
                return
            self._ring(ticket)

    def _ring(self, ticket: str) -> None:
        found = self._sessions.get(ticket)
        if found is not None:
            found.wake()

    def ring(self, tickets: Iterable[str]) -> None:
        """Wake sessions, here and in other processes. One that is not reached looks by itself."""
        for ticket in dict.fromkeys(tickets):
            process = process_of(ticket)
            if process == processes.incarnation():
                self._ring(ticket)
                continue
            if self._out is None:
                self._out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._out.setblocking(False)
            with suppress(OSError):
                self._out.sendto(ticket.encode(), _path(process))

    def after_fork(self) -> None:
        """Forget the parent's sessions and sockets, in a forked child."""
        for one in (self._own, self._out):
            if one is not None:
                one.close()
        self.__init__()  # type: ignore[misc]

    def close(self) -> None:
        """End the thread, when no session waits."""
        own, self._own = self._own, None
        if own is not None:
            with suppress(OSError):
                os.unlink(_path(processes.incarnation()))
            with suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)
