"""Ordered keys in a file of SQLite.

SQLite 3.7.0 to 3.51.2 can lose committed pages when one connection resets the write-ahead log while
another one checkpoints. So commits, checkpoints and closes are made only under a lock of ours, and
SQLite makes no checkpoint by itself. The lock also serves processes in the order in which they
come.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sqlite3
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from ...exceptions import AddressError, BrokerError, BrokerFull
from ..kv.store import Busy, Fate, How, Traits, Txn
from .own_transactions import OwnTransactions

R = TypeVar("R")

#: Pages of 8 KB: an item of 1 KB is then kept in the page of its key.
_PAGE = 8192
#: The size of the log, in bytes, from which on it is moved into the file.
_LOG = 4 << 20
#: How long, in seconds, a call waits for the end of another program's transaction.
_PATIENCE = 30
#: The locks of open files, which threads of a process do not share (Linux); ``struct flock``.
_TRY, _WAIT = 37, 38
_LOCKED, _FREE = (
    struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0) for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK)
)
_OPEN = os.O_RDWR | os.O_CLOEXEC
#: File systems on which the memory of the log is not shared, or locks are not.
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "afs", "glusterfs"}


class SqliteTxn:
    """A transaction of a connection."""

    def __init__(self, connection: sqlite3.Connection | sqlite3.Cursor) -> None:
        self._do = connection.execute

    def get(self, key: bytes, *, snapshot: bool = False) -> bytes | None:
        found = self._do("SELECT v FROM pressure_mp WHERE k=?", (key,)).fetchone()
        return None if found is None else found[0]

    def range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        order = "DESC" if reverse else "ASC"
        text = f"SELECT k,v FROM pressure_mp WHERE k>=? AND k<? ORDER BY k {order} LIMIT ?"
        return self._do(text, (begin, end, limit)).fetchall()

    def set(self, key: bytes, value: bytes) -> None:
        self._do("INSERT OR REPLACE INTO pressure_mp VALUES(?,?)", (key, value))

    def clear(self, key: bytes) -> None:
        self._do("DELETE FROM pressure_mp WHERE k=?", (key,))

    def clear_range(self, begin: bytes, end: bytes) -> None:
        self._do("DELETE FROM pressure_mp WHERE k>=? AND k<?", (begin, end))


class SqliteStore:
    """One file, and the lock beside it."""

    traits = Traits(optimistic=False, one_host=True)

    def __init__(self, path: str) -> None:
        self.path = path
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._lock_file = self._log_file = -1
        self._is_writing = False
        self.own_transactions = OwnTransactions()

    def write(self, body: Callable[[Txn], R], fate: Fate | None, how: How) -> R:
        durable, wait, _ = how
        if self._is_writing and not wait:
            raise Busy
        log = -1
        try:
            with self._lock:
                self._check_no_call()
                reply = self._write(body, fate, wait)
                log = os.dup(self._log_file) if durable else -1
            if durable:
                os.fdatasync(log)
            return reply
        except sqlite3.Error as error:
            is_full = "full" in str(error)
            raise (BrokerFull if is_full else BrokerError)(f"{self.path}: {error}") from error
        finally:
            if log >= 0:
                os.close(log)

    def _check_no_call(self) -> None:
        if self._is_writing:
            raise BrokerError(
                f"{self.path}: a signal handler or a finalizer came in the midst of a call of the "
                "same thread, and can make none"
            )

    def _write(self, body: Callable[[Txn], R], fate: Fate | None, wait: bool) -> R:
        # Each step may be the last one before an exception of a signal handler: so the lock is
        # given back even if it is not sure that it was got.
        try:
            self._is_writing = True
            if self._lock_file < 0:
                self._lock_file = os.open(f"{self.path}-lock", _OPEN | os.O_CREAT, 0o600)
            fcntl.fcntl(self._lock_file, _WAIT if wait else _TRY, _LOCKED)
            if self._connection is None:
                self._connection = self._connect()
            return self._commit(self._connection, body, fate, wait)
        except BlockingIOError:
            raise Busy from None
        finally:
            self._is_writing = False
            if self._lock_file >= 0:
                fcntl.fcntl(self._lock_file, _TRY, _FREE)

    def _connect(self) -> sqlite3.Connection:
        _check_folder(os.path.dirname(self.path))
        os.close(os.open(self.path, _OPEN | os.O_CREAT, 0o600))
        connection = sqlite3.connect(
            self.path, isolation_level=None, timeout=0, check_same_thread=False
        )
        do = connection.execute
        do(f"PRAGMA page_size={_PAGE}")
        do("PRAGMA journal_mode=WAL")
        do("PRAGMA wal_autocheckpoint=0")
        do("PRAGMA synchronous=NORMAL")
        do("CREATE TABLE IF NOT EXISTS pressure_mp(k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")
        self._log_file = os.open(f"{self.path}-wal", _OPEN)
        # The interpreter's end, and that of a forked child, must not close it: the last connection
        # makes a checkpoint then, without our lock.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        return connection

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
                    raise BrokerError(
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
            self._check_no_call()
            file = os.open(f"{self.path}-lock", _OPEN | os.O_CREAT, 0o600)
            try:
                fcntl.fcntl(file, _WAIT, _LOCKED)
                yield
            finally:
                os.close(file)

    def _commit(
        self,
        connection: sqlite3.Connection,
        body: Callable[[Txn], R],
        fate: Fate | None,
        wait: bool,
    ) -> R:
        if connection.in_transaction:  # an exception came in the midst of a rollback
            connection.execute("ROLLBACK")
        try:
            self._begin_transaction(connection, wait)
            reply = body(SqliteTxn(connection))
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            elif fate is not None and not isinstance(error, sqlite3.Error):
                fate.is_done()
            raise
        if fate is not None:
            fate.is_done()
        if os.fstat(self._log_file).st_size > _LOG:
            with suppress(sqlite3.OperationalError):  # another program reads: later
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return reply

    def after_fork(self) -> None:
        for file in (self._lock_file, self._log_file):
            if file >= 0:
                os.close(file)
        self._begin()

    def close(self) -> None:
        """Close the connection; the store may be used again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            try:
                fcntl.fcntl(self._lock_file, _WAIT, _LOCKED)
                connection.close()
            finally:
                fcntl.fcntl(self._lock_file, _TRY, _FREE)
                os.close(self._log_file)
                os.close(self._lock_file)
                self._lock_file = self._log_file = -1


def _check_folder(folder: str) -> None:
    """Raise AddressError for a folder in which a file cannot be a queue."""
    found = os.stat(folder)
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        raise AddressError(f"other users can write to {folder}, and so replace the file")
    with suppress(OSError), open("/proc/self/mountinfo") as mounts:
        device = f"{os.major(found.st_dev)}:{os.minor(found.st_dev)}"
        for line in mounts:
            about, _, kind = line.partition(" - ")
            if about.split()[2] == device and kind.split()[0] in _NETWORK:
                raise AddressError(
                    f"{folder} is on a network file system ({kind.split()[0]}), which cannot share "
                    "the log of SQLite: name a file on a disk of this machine"
                )
