"""The file of a store, its log and its ballast, as a process has them open.

All of this is used under the store's lock. The log is laid out in full, and is written in place
again and again: so what takes items needs no space on the disk. Moving the log into the file may
need some, for pages that the file did not have. The ballast has that space: it is given up when the
disk is full, and no item is put until it is laid again, or the file has so much space that holds
nothing.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import resource
import sqlite3
import time
from contextlib import suppress

from ...exceptions import BrokerFull, NotSupportedError
from . import checks

_log = logging.getLogger("pressure_mp")

#: Pages of 8 KB: an item of 1 KB is then kept in the page of its key.
_PAGE = 8192
#: The log is moved when it has so many bytes, and one transaction may add what is left of its size.
_LIMIT, SIZE = 2 << 20, 7 << 19
#: In the log: the size of its header and of a page's, and where they have the salts, which change
#: when the log begins anew.
_HEADER, _FRAME, _SALTS, _FRAME_SALTS = 32, 24, 16, 8
_OPEN = os.O_RDWR | os.O_CLOEXEC
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Ballast:
    """A file that holds space on the disk, and nothing else."""

    def __init__(self, path: str) -> None:
        self._path, self._new = f"{path}-ballast", f"{path}-ballast-new"

    @property
    def size(self) -> int:
        """Its size in bytes; -1 if there is none, because there was never space for it."""
        try:
            return os.stat(self._path).st_size
        except FileNotFoundError:
            return -1

    def make(self) -> bool:
        """Lay it, if there is none; return whether there is one."""
        if self.size >= 0:
            return True
        if _reserve(self._new, SIZE):
            os.rename(self._new, self._path)
            return True
        os.unlink(self._new)
        return False

    def lay(self, size: int) -> bool:
        """Make it as large as that, if the disk has the space."""
        return _reserve(self._path, size)

    def give_up(self) -> bool:
        """Give its space back to the disk; return whether it had any."""
        if self.size <= 0:
            return False
        # Where a quota is used up, a file can be removed, but perhaps not cut. An empty file takes
        # its place in one step: without a file, the ballast counts as never laid.
        try:
            _empty(self._new)
            os.rename(self._new, self._path)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            try:
                os.unlink(self._path)
            finally:
                _empty(self._path)
        return True


def _empty(path: str) -> None:
    """Make an empty file."""
    os.close(os.open(path, _OPEN | os.O_CREAT | os.O_TRUNC, 0o600))


def _reserve(path: str, size: int) -> bool:
    """Make a file as large as that; if the disk has no space for it, leave it as it was, and return
    False."""
    file = os.open(path, _OPEN | os.O_CREAT, 0o600)
    before = os.fstat(file).st_size
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        os.ftruncate(file, before)
        if error.errno not in _NO_SPACE:
            raise
        return False
    finally:
        os.close(file)
    return True


class Files:
    """The descriptors that one process has open for the file at ``path``."""

    def __init__(self, path: str) -> None:
        """Open all of it; create what is not there. Raises AddressError, NotSupportedError,
        sqlite3.Error and OSError."""
        self.path = path
        checks.check_library()
        checks.check_folder(os.path.dirname(path))
        # A file that is there is left alone: closing it would drop the locks that the connections
        # of this process have there.
        with suppress(FileExistsError):
            os.close(os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600))
        self.ballast = Ballast(path)
        try:
            self.connection = _connect(path)
        except sqlite3.OperationalError as error:
            if not (is_full(error, path) and self.ballast.give_up()):
                raise
            self.connection = _connect(path)
        self.log = os.open(f"{path}-wal", _OPEN)
        self._page = self._count("page_size")
        # Where the log has passed its limit: then this frame is of the same salts as the log.
        self._salts, self._passed = b"", self._frame_at(_LIMIT)
        self._lay()

    def _lay(self) -> None:
        """Lay out the log and the ballast, if the disk has the space."""
        try:
            if os.fstat(self.log).st_size < SIZE:
                os.posix_fallocate(self.log, 0, SIZE)
            is_laid = self.ballast.make()
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            is_laid = False
        if not is_laid:
            _log.warning(
                "the disk has no space for %s-ballast (%d bytes): when the disk is full, nothing "
                "can be got from the queues there",
                self.path,
                SIZE,
            )

    def _count(self, what: str) -> int:
        ((number,),) = self.connection.execute(f"PRAGMA {what}").fetchall()
        return int(number)

    def _frame_at(self, size: int) -> int:
        """The place of the frame that begins in a log of that size."""
        frame = self._page + _FRAME
        return _HEADER + size // frame * frame

    def empty(self) -> int:
        """Count the bytes of the file, as it is on the disk, that hold nothing."""
        return os.stat(self.path).st_size - self._used()

    def _used(self) -> int:
        """Count the bytes of the file that hold something when the log is moved."""
        return (self._count("page_count") - self._count("freelist_count")) * self._page

    def has_other_tables(self) -> bool:
        """Tell whether a program has its own tables in the file."""
        text = "SELECT count(*) FROM sqlite_master WHERE tbl_name<>'pressure_mp'"
        return self.connection.execute(text).fetchall() != [(0,)]

    def admit(self) -> None:
        """Raise BrokerFull if the disk has no space for items that are put, or the file none below
        this process's limit for files: beyond it, nothing could be got either."""
        most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if most != resource.RLIM_INFINITY and self._used() + SIZE > most:
            raise BrokerFull(
                f"{self.path}: a put needs {SIZE >> 10} KB, and this process may write files of at "
                f"most {most >> 10} KB (ulimit -f). Get items, or raise the limit"
            )
        size = self.ballast.size
        if size < 0 or size >= SIZE:
            return
        needed = SIZE - self.empty()
        if needed > size and not self.ballast.lay(needed):
            raise BrokerFull(
                f"{self.path}: the disk is full: a put needs {needed >> 10} KB there, so that what "
                "is queued can be got. Get items, or make space"
            )

    def has_long_log(self) -> bool:
        """Tell whether the log has passed its limit."""
        salts = os.pread(self.log, 8, _SALTS)
        if salts != self._salts:
            self._salts, self._passed = salts, self._frame_at(_LIMIT)
        return os.pread(self.log, 8, self._passed + _FRAME_SALTS) == salts

    def move_log(self) -> None:
        """Move the log into the file if it has passed its limit. It begins anew with the next
        transaction, unless another program reads what it has."""
        if self.has_long_log():
            self._checkpoint("PASSIVE")

    def restart_log(self) -> None:
        """Move the log between two transactions of another connection, so that the next one begins
        it anew. Tries that for about a second."""
        end = time.monotonic() + 1
        while self._checkpoint("RESTART") and time.monotonic() < end:
            time.sleep(0.0002)  # a program that only puts has short times between its transactions

    def _checkpoint(self, mode: str) -> bool:
        """Move the log as far as others let us; tell whether they did not let us do all of it."""
        while True:
            try:
                rows = self.connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            except sqlite3.OperationalError as error:
                if is_full(error, self.path) and self.ballast.give_up():
                    continue
                return True  # another program has the file: later
            is_busy, frames, _ = rows[0]
            self._passed = self._frame_at(frames * (self._page + _FRAME) + _LIMIT)
            return bool(is_busy)

    def close(self) -> None:
        """Close it all; the last process moves the log."""
        self.connection.close()
        os.close(self.log)

    def after_fork(self) -> None:
        """Close the log in a forked child, and leave the connection, which is the parent's."""
        os.close(self.log)


_SET_UP = f"""
    PRAGMA page_size={_PAGE};
    PRAGMA journal_mode=WAL;
    PRAGMA wal_autocheckpoint=0;
    PRAGMA journal_size_limit={SIZE};
    PRAGMA synchronous=NORMAL;
    PRAGMA secure_delete=OFF;
    CREATE TABLE IF NOT EXISTS pressure_mp(k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID;
"""


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    do = connection.execute
    try:
        checks.check_options({name for (name,) in do("PRAGMA compile_options")})
        # In one call, so that no signal handler that opens the file, too, finds it locked.
        connection.executescript(_SET_UP)
        ((mode,),) = do("PRAGMA journal_mode").fetchall()
        if mode != "wal":
            raise NotSupportedError(
                f"SQLite {sqlite3.sqlite_version} has no write-ahead log for {path}: {mode}"
            )
    except BaseException:
        connection.close()
        raise
    # The interpreter's end, and that of a forked child, must not close it: the last connection
    # moves the log then, without our lock.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    return connection


def is_full(error: sqlite3.Error, path: str) -> bool:
    """Tell whether an error came because the disk has no space for the file."""
    if "disk I/O error" not in str(error):
        return "full" in str(error)
    # SQLite says no more when a quota is used up, or when there is no space for shared memory.
    try:
        file = os.open(os.path.dirname(path), os.O_RDWR | os.O_CLOEXEC | os.O_TMPFILE, 0o600)
        try:
            os.posix_fallocate(file, 0, _LIMIT)
        finally:
            os.close(file)
    except OSError as found:
        return found.errno in _NO_SPACE
    return False
