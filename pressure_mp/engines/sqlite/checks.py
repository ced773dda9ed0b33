"""Check the library of SQLite, and the folder, before queues are kept in a file."""

from __future__ import annotations

import _sqlite3
import os
import re
import sqlite3
import stat
from contextlib import suppress

from ...caller_warnings import warn_caller
from ...exceptions import AddressError, NotSupportedError

#: The first SQLite that has tables without row ids.
_OLDEST = (3, 8, 2)
#: File systems on which the memory of the log is not shared, or locks are not.
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "afs", "glusterfs"}
#: The names of the files that may have the code of SQLite inside, and text that this code has.
_NAMES, _TEXT = re.compile(r"/[^\n]*(?:sqlite|apsw)[^\n]*\.so[^\n]*"), b"SQLite format 3\0"

_checked: list[str] = []


def check_library() -> None:
    """Raise NotSupportedError for an SQLite that cannot keep queues; warn, once in a process, of a
    second copy of SQLite: each drops the locks of the other one at a file that both use."""
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _OLDEST:
        needed = ".".join(map(str, _OLDEST))
        raise NotSupportedError(
            f"SQLite {version} cannot keep queues: {needed} or later is needed, and Python with it"
        )
    if not _checked:
        _checked.append(version)
        others = _libraries()
        if len(others) + (not hasattr(_sqlite3, "__file__")) > 1:
            warn_caller(
                f"this process has several copies of SQLite ({', '.join(others)}), and a file that "
                "two of them use may be damaged: use files of queues by the module sqlite3 only",
                RuntimeWarning,
            )


def _libraries() -> list[str]:
    """List the files in this process's memory that have the code of SQLite."""
    found = []
    with suppress(OSError):
        with open("/proc/self/maps", errors="replace") as maps:
            names = sorted(set(_NAMES.findall(maps.read())))
        for name in names:
            with suppress(OSError), open(name, "rb") as file:
                if _TEXT in file.read():
                    found.append(name)
    return found


def check_options(options: set[str]) -> None:
    """Raise NotSupportedError for an SQLite that was compiled without what queues need."""
    for option, lack in _LACKS.items():
        if option in options:
            raise NotSupportedError(
                f"SQLite {sqlite3.sqlite_version} cannot keep queues: it was compiled with "
                f"{option}, so it has no {lack}"
            )


_LACKS = {"THREADSAFE=0": "locks between threads", "OMIT_WAL": "write-ahead log"}


def check_folder(folder: str) -> None:
    """Raise AddressError for a folder in which a file cannot have queues."""
    found = os.stat(folder)
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        raise AddressError(f"other users can write to {folder}, and so replace the file")
    kind = file_system(folder)
    if kind in _NETWORK:
        raise AddressError(
            f"{folder} is on a network file system ({kind}), which cannot share the log of SQLite: "
            "name a file on a disk of this machine"
        )


def file_system(folder: str) -> str:
    """Return the kind of the folder's file system; empty if the system does not say."""
    found = os.stat(folder)
    with suppress(OSError), open("/proc/self/mountinfo") as mounts:
        device = f"{os.major(found.st_dev)}:{os.minor(found.st_dev)}"
        for line in mounts:
            about, _, kind = line.partition(" - ")
            if about.split()[2] == device:
                return kind.split()[0]
    return ""
