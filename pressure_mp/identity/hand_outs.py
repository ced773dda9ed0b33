"""Count the items that a reader ever handed out, so that other processes of the same user and host
can read the number after this process was killed.

Each reader has a file of its own, in memory where the system has files in memory. Without a file,
other processes assume that nothing was handed out since the reader last told the broker.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from contextlib import suppress

from . import shared_folder
from .descriptors import map_file
from .processes import is_there

_COUNT = struct.Struct("=Q")
#: Seconds for which the file of a killed process is kept, if no process takes its items over.
_OLD = 3600


#: Why a process cannot look now, though the file is there.
_FOR_NOW = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class HandOuts:
    """The count of one reader. ``cell[0]`` is increased with each item that is handed out: a step
    behind which no signal handler runs."""

    def __init__(self, reader: str) -> None:
        self._path = ""
        self._process = os.getpid()
        self.cell = memoryview(bytearray(_COUNT.size)).cast("Q")
        with suppress(OSError):
            folder = shared_folder.find(make=True)
            shared_folder.sweep(folder, _OLD, _remove)
            path = _path(folder, reader)
            self.cell = memoryview(_map(path)).cast("Q")
            self._path = path

    def end(self) -> None:
        """Remove the file: the reader has no items any more. A forked child leaves its parent's
        file alone."""
        if self._path and self._process == os.getpid():
            with suppress(OSError):
                os.unlink(self._path)
        self._path = ""

    __del__ = end


def read(reader: str) -> int | None:
    """Return how many items a reader ever handed out; None when that cannot be seen here. Raises
    OSError when this process cannot look now."""
    try:
        with open(_path(shared_folder.find(), reader), "rb") as file:
            (number,) = _COUNT.unpack(file.read())
    except OSError as error:
        if error.errno in _FOR_NOW:
            raise
        return None  # the reader is on another host
    except struct.error:  # the file is just being made
        return None
    return int(number)


def of_owner(owner: str) -> list[tuple[str, int]]:
    """Return the counts of the readers of a process that prefetched, as far as they can be seen
    here. Raises OSError when this process cannot look now."""
    try:
        names = os.listdir(shared_folder.find())
    except OSError as error:
        if error.errno in _FOR_NOW:
            raise
        return []
    readers = [_reader(name) for name in names if _reader(name).startswith(f"{owner}#")]
    return [(one, number) for one in readers if (number := read(one)) is not None]


def forget(reader: str) -> None:
    """Remove the file of a reader that has ended: other processes have its items now."""
    with suppress(OSError):
        os.unlink(_path(shared_folder.find(), reader))


def _map(path: str) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # All of it is there before it is mapped: to write to a map without space behind it ends the
        # process.
        if os.write(fd, bytes(_COUNT.size)) < _COUNT.size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return map_file(fd, _COUNT.size)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def _path(folder: str, reader: str) -> str:
    return os.path.join(folder, reader.replace("/", ","))


def _reader(name: str) -> str:
    return name.replace(",", "/")


def _remove(path: str) -> None:
    if is_there(_reader(os.path.basename(path))) is False:
        os.unlink(path)
