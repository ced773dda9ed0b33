"""Bells, on which processes wake each other's waiting sessions: a datagram socket of each process
of one host; or, between hosts, a key of each session in the store."""

from __future__ import annotations

import hashlib
import socket
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol, cast

from ...identity import processes
from ...identity.client import process_of
from .. import wake_sockets
from .packing import pack
from .store import SharedTxn, Txn, Watching


class Wakes(Protocol):
    """A session that waits."""

    @property
    def ticket(self) -> str: ...

    def wake(self) -> None: ...


class Bells:
    """How sessions are woken by their tickets. Each method does nothing where that is not
    needed."""

    def note(self, session: Wakes) -> None:
        """Have a session woken that is about to wait."""

    def forget(self, ticket: str) -> None:
        """Undo :meth:`note`."""

    def silence(self, txn: Txn, ticket: str) -> None:
        """Forget earlier rings, in the transaction that gives the session its place or takes it
        away."""

    def mark(self, txn: Txn, tickets: Iterable[str]) -> None:
        """Wake sessions when this transaction is committed, as far as it can do that."""

    def ring(self, tickets: Iterable[str]) -> None:
        """Wake sessions, after that transaction."""

    def listen(self, session: Wakes) -> Callable[[], None]:
        """Have a session woken that waits from now on, also if it was rung since its transaction.
        Returns a function that ends this. Neither blocks."""
        return lambda: None

    def after_fork(self) -> None:
        """Forget the parent's sessions and sockets, in a forked child."""

    def close(self) -> None:
        """End the thread, if no session waits."""


def _name(process: str) -> str:
    return hashlib.sha256(process.encode()).hexdigest()[:24]


class SocketBells(Bells):
    """The sessions of this process that wait, at whatever store, and the socket on which they are
    rung."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._sessions: weakref.WeakValueDictionary[str, Wakes] = weakref.WeakValueDictionary()
        self._own: socket.socket | None = None

    def note(self, session: Wakes) -> None:
        self._sessions[session.ticket] = session
        if self._own is None:
            with self._lock:
                if self._own is None:
                    self._own = self._listen()

    def forget(self, ticket: str) -> None:
        self._sessions.pop(ticket, None)

    def _listen(self) -> socket.socket:
        name = _name(processes.incarnation())
        own = wake_sockets.listen(name)
        try:
            own.setblocking(True)
            run = threading.Thread(
                target=self._run, args=(own,), daemon=True, name="pressure bells"
            )
            run.start()
        except BaseException:  # such as: no thread can be started now
            own.close()
            wake_sockets.remove(name)  # else no later call could listen under that name
            raise
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
        # A session that no datagram reaches looks by itself.
        for ticket in dict.fromkeys(tickets):
            process = process_of(ticket)
            if process == processes.incarnation():
                self._ring(ticket)
                continue
            with suppress(OSError):
                wake_sockets.wake(_name(process), ticket.encode())

    def after_fork(self) -> None:
        if self._own is not None:
            self._own.close()
        self._begin()

    def close(self) -> None:
        if self._sessions:
            return
        own, self._own = self._own, None
        if own is not None:
            wake_sockets.remove(_name(processes.incarnation()))
            with suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)


#: Of this process: the tickets of its sessions say no more than the process.
of_process = SocketBells()


class WatchedBells(Bells):
    """A key of each session in the store, which is there when the session was rung."""

    def __init__(self, store: Watching, prefix: bytes) -> None:
        self._store, self._prefix = store, prefix

    def _key(self, ticket: str) -> bytes:
        return self._prefix + pack((ticket,))

    def silence(self, txn: Txn, ticket: str) -> None:
        # A ring that comes before the commit is not lost: then this transaction is made again.
        cast(SharedTxn, txn).depend(self._key(ticket))
        txn.clear(self._key(ticket))

    def mark(self, txn: Txn, tickets: Iterable[str]) -> None:
        for ticket in tickets:
            txn.set(self._key(ticket), b"")

    def listen(self, session: Wakes) -> Callable[[], None]:
        return self._store.watch(self._key(session.ticket), session.wake)
