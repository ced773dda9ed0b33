"""Ordered keys in a file of SQLite.

SQLite 3.7.0 to 3.51.2 can lose committed pages when one connection resets the write-ahead log while
another one checkpoints. So commits, checkpoints and closes are made only under a lock of ours, and
SQLite makes no checkpoint by itself. The lock also serves processes in the order in which they
come.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from ... import interrupts
from ...exceptions import BrokerError, BrokerFull, CallCancelledError
from ..contract.brokers import Finding
from ..kv.store import Body, Busy, Fate, How, Traits
from . import findings
from .files import Files, is_full

R = TypeVar("R")

#: How long, in seconds, a call waits for the end of another program's transaction.
_PATIENCE = 30
#: Seconds that a fork waits for the end of a transaction.
_LONGEST_TRANSACTION = 1.0
#: The locks of open files, which threads of a process do not share (Linux); ``struct flock``.
_TRY, _WAIT = 37, 38
_LOCKED, _FREE = (
    struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0) for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK)
)


_UP, _DOWN = (
    f"SELECT k,v FROM pressure_mp WHERE k>=? AND k<? ORDER BY k {order} LIMIT ?"
    for order in ("ASC", "DESC")
)


class _Undone(Exception):
    """Another call of the thread, in the midst of the transaction, has undone it."""


class SqliteTxn:
    """A transaction of a connection."""

    #: Whether another call of the thread has undone it. What is still done belongs to a transaction
    #: that is rolled back.
    is_undone = False

    def __init__(self, connection: sqlite3.Connection | sqlite3.Cursor) -> None:
        self._do = connection.execute

    def get(self, key: bytes, *, snapshot: bool = False) -> bytes | None:
        found = self._do("SELECT v FROM pressure_mp WHERE k=?", (key,)).fetchone()
        if self.is_undone:
            raise _Undone
        return None if found is None else found[0]

    def range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        found = self._do(_DOWN if reverse else _UP, (begin, end, limit)).fetchall()
        if self.is_undone:
            raise _Undone
        return found

    def set(self, key: bytes, value: bytes) -> None:
        self._change("INSERT OR REPLACE INTO pressure_mp VALUES(?,?)", (key, value))

    def clear(self, key: bytes) -> None:
        self._change("DELETE FROM pressure_mp WHERE k=?", (key,))

    def clear_range(self, begin: bytes, end: bytes) -> None:
        self._change("DELETE FROM pressure_mp WHERE k>=? AND k<?", (begin, end))

    def _change(self, text: str, values: tuple[bytes, ...]) -> None:
        if self.is_undone:
            raise _Undone
        self._do(text, values)


class SqliteStore:
    """One file, and the lock beside it."""

    traits = Traits(optimistic=False, one_host=True)

    def __init__(self, path: str) -> None:
        self.path = path
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._forking: set[int] = set()  # threads that fork, and have the lock
        self._lock_file = -1
        self._files: Files | None = None
        #: Whether this process has the lock of the file, and how often it gave it back.
        self._is_held = False
        self._releases = 0
        #: The transaction that the thread with the lock is in the midst of.
        self._txn: SqliteTxn | None = None
        self._mover: threading.Thread | None = None

    def write(self, body: Body[R], fate: Fate | None, how: How) -> R:
        log = -1
        try:
            for held in interrupts.attempts(self._lock, -1 if how.wait else 0):
                if not held:
                    raise Busy
                try:
                    files, reply = self._in_turn(body, fate, how)
                    log = os.dup(files.log) if how.durable else -1
                finally:
                    self._lock.release()
            if how.durable:
                os.fdatasync(log)
            return reply
        except sqlite3.Error as error:
            if is_full(error, self.path):
                raise BrokerFull(
                    f"{self.path}: the disk is full, or a quota used up: get items, or make space"
                ) from error
            raise BrokerError(f"{self.path}: {error}") from error
        except OSError as error:
            if interrupts.is_from_outside(error):
                raise
            raise BrokerError(f"{self.path}: {error}") from error
        finally:
            if log >= 0:
                os.close(log)

    def _in_turn(self, body: Body[R], fate: Fate | None, how: How) -> tuple[Files, R]:
        """Make a transaction with the file's lock, which this thread may have already."""
        if self._is_held:
            return self._write(body, fate, how)
        # Each step may be the last one before an exception of a signal handler: so the lock is
        # given back even if it is not sure that it was got.
        try:
            self._acquire(how.wait)
            return self._write(body, fate, how)
        finally:
            self._release()

    def _release(self) -> None:
        self._is_held = False
        self._releases += 1
        if self._lock_file >= 0:
            fcntl.fcntl(self._lock_file, _TRY, _FREE)

    def _acquire(self, wait: bool) -> None:
        if self._lock_file < 0:
            self._lock_file = os.open(
                f"{self.path}-lock", os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, 0o600
            )
        while not self._is_held:
            releases = self._releases
            try:
                fcntl.fcntl(self._lock_file, _WAIT if wait else _TRY, _LOCKED)
            except BlockingIOError:
                raise Busy from None
            self._is_held = True
            if self._releases != releases:  # a signal handler has used the lock, and released it
                self._is_held = False

    def _open(self) -> Files:
        """Open the files, unless a signal handler does so meanwhile."""
        try:
            opened = Files(self.path)
        except (sqlite3.Error, OSError):
            if self._files is None:
                raise
        else:
            if self._files is None:
                self._files = opened
            else:
                opened.close()
        return self._files

    def _write(self, body: Body[R], fate: Fate | None, how: How) -> tuple[Files, R]:
        files = self._files or self._open()
        while True:
            txn = SqliteTxn(files.connection)
            try:
                reply = self._commit(files, txn, body, fate, how)
            except _Undone:
                continue
            except sqlite3.OperationalError as error:
                if txn.is_undone:  # what it did then was refused
                    continue
                if how.adds or not (is_full(error, self.path) and files.ballast.give_up()):
                    raise
            else:
                files.move_log()
                return files, reply

    def _commit(
        self, files: Files, txn: SqliteTxn, body: Body[R], fate: Fate | None, how: How
    ) -> R:
        connection, outer = files.connection, self._txn
        do = connection.execute
        self._undo(connection)
        is_ending = False
        try:
            self._txn = txn
            self._begin_transaction(connection, how.wait)
            if how.adds:
                files.admit()
            reply = body(txn)
            if txn.is_undone:
                raise _Undone
            is_ending = True
            do("COMMIT")
            if txn.is_undone:  # by a finalizer, before SQLite began with the commit
                raise _Undone
            if fate:
                fate.is_done = True
        except BaseException as error:
            if connection.in_transaction:
                do("ROLLBACK")
            elif fate and is_ending and not (txn.is_undone or isinstance(error, sqlite3.Error)):
                fate.is_done = True
            raise
        finally:
            self._txn = outer
            if outer is not None and outer.is_undone and not connection.in_transaction:
                do("BEGIN")  # for the step that the other call is in the midst of
        return reply

    def _undo(self, connection: sqlite3.Connection) -> None:
        """Undo the transaction that the thread is in the midst of. It is done once more."""
        if connection.in_transaction:  # perhaps an exception came in the midst of a rollback
            if self._txn is not None:
                self._txn.is_undone = True
            connection.execute("ROLLBACK")

    def _begin_transaction(self, connection: sqlite3.Connection, wait: bool) -> None:
        """Take the lock to write. Waits while a program has a transaction of its own in the
        file."""
        end, pause = time.monotonic() + _PATIENCE, 0.0005
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                if not wait:
                    raise Busy from None
                if time.monotonic() > end:
                    raise CallCancelledError(
                        f"{self.path}: for {_PATIENCE} s another connection has had a transaction "
                        "that writes to the file. If it is this program's own, make the call with "
                        "connection=, or after its end"
                    ) from error
            pause = min(pause * 2, 0.05)
            time.sleep(pause)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Have the lock, so that no call on a queue has a transaction."""
        with self._lock:
            if self._is_held:
                assert self._files is not None
                self._undo(self._files.connection)
                yield
                return
            try:
                self._acquire(True)
                yield
            finally:
                self._release()

    def move_log(self) -> None:
        """Have the log moved if transactions of a program have made it long: by another thread,
        since that waits for the end of the caller's transaction."""
        mover = self._mover
        if self._files is None or not self._files.has_long_log():
            return
        if mover is None or not mover.is_alive():
            self._mover = threading.Thread(
                target=self._restart_log, daemon=True, name="pressure log"
            )
            self._mover.start()

    def _restart_log(self) -> None:
        with self.turn():
            if self._files is not None:
                self._files.restart_log()

    def admit(self) -> None:
        """Raise BrokerFull if the disk has no space for items that a program puts in a transaction
        of its own, which has the lock to write."""
        if self._files is not None:
            self._files.admit()

    def examine(self) -> list[Finding]:
        """Find what is wrong with the file. The caller is in the midst of a transaction."""
        assert self._files is not None
        return list(findings.find(self._files))

    def before_fork(self) -> None:
        """Wait until no thread is in the midst of a transaction, and keep it so. A thread that
        waits for its turn has nothing that the child must not have, so it is not waited for; nor is
        a store that is closed, which the child would not reset."""
        if self._files is None and not self._is_held:
            return
        if not self._lock.acquire(timeout=_LONGEST_TRANSACTION):
            return
        self._forking.add(threading.get_ident())
        if self._is_held and self._files is not None:  # by a call that this thread interrupted
            self._undo(self._files.connection)

    def after_fork_in_parent(self) -> None:
        me = threading.get_ident()
        if me in self._forking:
            self._forking.discard(me)
            self._lock.release()

    def after_fork(self) -> None:
        if self._lock_file >= 0:
            os.close(self._lock_file)
        if self._files is not None:
            self._files.after_fork()
        self._begin()

    def close(self) -> None:
        """Close the connection; the store may be used again."""
        with self._lock:
            if self._files is None:
                return
            files = self._files
            try:
                self._acquire(True)
                self._files = None
                files.close()
            finally:
                self._release()
                os.close(self._lock_file)
                self._lock_file = -1
