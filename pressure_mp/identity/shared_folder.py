"""This user's folder for files that the processes of one host share."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress

#: Where files are in memory, on Linux.
MEMORY = "/dev/shm"

#: The process in which each kind of file was last swept.
_swept: dict[Callable[[str], None], int] = {}


def find(make: bool = False) -> str:
    """Return the path of the folder: in memory, where the system has files in memory. Raises
    OSError when it is not this user's alone."""
    path = os.path.join(
        MEMORY if os.path.isdir(MEMORY) else _temporary(), f"pressure_mp-{os.geteuid()}"
    )
    if make:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(f"{path} is not this user's alone")
    return path


def _temporary() -> str:
    import tempfile  # takes long, and is seldom needed

    return tempfile.gettempdir()


def sweep(folder: str, seconds: float, remove: Callable[[str], None]) -> None:
    """Call ``remove``, once in a process, for each file that was written so long ago. It removes
    files of its kind that killed processes left; a file for which it raises OSError stays."""
    if _swept.get(remove) == os.getpid():
        return
    _swept[remove] = os.getpid()
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with suppress(OSError):
            if time.time() - os.stat(path).st_mtime > seconds:
                remove(path)
