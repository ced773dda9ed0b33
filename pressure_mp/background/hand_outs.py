"""How many of the items that a reader fetched ahead it handed out, where other processes of the
same user and host can see it when this one was killed.

Each reader has a file of its own, in memory where there is such a place. Without one, others know
what the reader last told the broker.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import struct
import tempfile
import time
from contextlib import suppress
from typing import NamedTuple

from ..identity.processes import incarnation, is_there, state

#: A file has the count, and then a text: its reader and its queue.
_COUNT = struct.Struct("=Q")
#: The call is above so many bits of the count, and how many were handed out below.
_BITS = 20
_BELOW = (1 << _BITS) - 1
#: Seconds for which what a killed process left is kept, if nobody takes its items over.
_OLD = 86_400


class HandOuts:
    """Those of one reader. ``cell[0]`` is counted up with each item that is handed out: a step
    behind which no signal handler runs."""

    def __init__(self, reader: str, queue: str) -> None:
        self._path = ""
        self._process = os.getpid()
        text = f"{reader}\n{queue}".encode()
        self.cell = memoryview(bytearray(_COUNT.size)).cast("Q")
        with suppress(OSError):
            folder = _folder(make=True)
            _sweep(folder)
            path = os.path.join(folder, _file(reader))
            self.cell = memoryview(_map(path, text))[: _COUNT.size].cast("Q")
            self._path = path

    def begin(self, call: int) -> None:
        """Of what was fetched in that call nothing was handed out yet."""
        self.cell[0] = call << _BITS

    def end(self) -> None:
        """The reader has nothing any more. A forked child leaves its parent's file alone."""
        if self._path and self._process == os.getpid():
            with suppress(OSError):
                os.unlink(self._path)
        self._path = ""

    __del__ = end


class HandedOut(NamedTuple):
    """Of a reader's call so many."""

    reader: str
    call: int
    number: int


def of(owner: str, queue: str) -> list[HandedOut]:
    """What readers of a process handed out of a queue's items, as far as that can be seen here."""
    return [found for found, _ in _find(owner, queue)]


def forget(owner: str, queue: str) -> None:
    """What it had of the queue has gone to others. If it is only stopped, it will look again."""
    if state(owner) == "dead":
        for _, path in _find(owner, queue):
            with suppress(OSError):
                os.unlink(path)


def _find(owner: str, queue: str) -> list[tuple[HandedOut, str]]:
    found = []
    with suppress(OSError):
        folder, begin = _folder(), _file(f"{owner}#")
        for name in os.listdir(folder):
            if name.startswith(begin):
                path = os.path.join(folder, name)
                count, reader, whose = _read(path)
                if whose == queue:
                    found.append((HandedOut(reader, count >> _BITS, count & _BELOW), path))
    return found


def _read(path: str) -> tuple[int, str, str]:
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < _COUNT.size:  # it is just being made
        return 0, "", ""
    reader, _, queue = data[_COUNT.size :].decode().partition("\n")
    return _COUNT.unpack_from(data)[0], reader, queue


def _map(path: str, text: bytes) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # All of it is there before it is mapped: to write to memory for which there is no place
        # ends the process.
        if os.write(fd, _COUNT.pack(0) + text) < _COUNT.size + len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return mmap.mmap(fd, _COUNT.size + len(text))
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def _folder(make: bool = False) -> str:
    """This user's folder. Raises OSError when it is not this user's alone."""
    above = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    path = os.path.join(above, f"pressure_mp-{os.geteuid()}")
    if make:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(f"{path} is not this user's alone")
    return path


def _file(reader: str) -> str:
    return reader.replace("/", "_")


_swept_by = ""


def _sweep(folder: str) -> None:
    """Once in a process, remove what is old, and of processes that are no longer there."""
    global _swept_by
    if _swept_by == incarnation():
        return
    _swept_by = incarnation()
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with suppress(OSError, UnicodeDecodeError):
            _, reader, _ = _read(path)
            is_old = time.time() - os.stat(path).st_ctime > _OLD
            if is_old and is_there(reader.rpartition("#")[0]) is False:
                os.unlink(path)
