"""Find what is wrong with a file of queues, for ``pressure-mp doctor``."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from ..contract.brokers import Finding
from . import checks
from .files import SIZE, Files

#: The versions that have the fault, up to the first repaired one; those between are repaired, too.
_FAULTY, _REPAIRED = (3, 7, 0), (3, 51, 3)
_REPAIRED_BEFORE = {(3, 44): 6, (3, 50): 7}
_IN_MEMORY = ("tmpfs", "ramfs")
#: Bytes that hold nothing and are worth a word.
_MUCH = 64 << 20


def find(files: Files) -> Iterator[Finding]:
    """Find what is wrong with a file, its folder and its disk. The caller has the lock."""
    folder = os.path.dirname(files.path)
    kind = checks.file_system(folder)
    if kind in _IN_MEMORY:
        yield Finding(
            "file system",
            kind,
            "The queues are in memory, and are lost when the machine stops.",
            "Name a file on a disk.",
        )
    yield from _of_space(files, folder)
    log = os.fstat(files.log).st_size
    if log > SIZE:
        yield Finding(
            "log",
            _megabytes(log),
            "Another program has read the file for long: the log grows, and calls become slower.",
            "End that program's transaction; the log is cut when it is moved the next time.",
            loses=False,
        )
    if files.has_other_tables() and is_faulty(sqlite3.sqlite_version_info):
        yield Finding(
            "SQLite",
            sqlite3.sqlite_version,
            "The file has tables of a program. If that moves the log by itself, at the moment when "
            "the queues do, confirmed items can be lost.",
            "Execute PRAGMA wal_autocheckpoint=0 on its connections, or use SQLite 3.51.3.",
            loses=False,
        )


def _of_space(files: Files, folder: str) -> Iterator[Finding]:
    ballast = files.ballast.size
    with suppress(OSError):
        found = os.statvfs(folder)
        free = found.f_bavail * found.f_frsize
        if ballast < 0:
            yield Finding(
                "ballast",
                "none",
                f"The disk had no space for {_megabytes(SIZE)} more. When it is full, a get may be "
                "refused.",
                "Make space; the next process that uses the queues lays it.",
                loses=False,
            )
        elif ballast < SIZE or free < SIZE:
            yield Finding(
                "disk",
                f"{_megabytes(free)} free",
                "The disk is full, or soon is: then puts are refused.",
                "Make space, or get items.",
                loses=False,
            )
    empty = files.empty()
    size = os.stat(files.path).st_size
    if empty > _MUCH and empty > size / 2:
        yield Finding(
            "file",
            _megabytes(size),
            f"{_megabytes(empty)} of it hold nothing: items that come have this space.",
            "To have it back, execute VACUUM when no program uses the queues.",
            loses=False,
        )


def is_faulty(version: tuple[int, ...]) -> bool:
    """Tell whether two programs that move the log at the same moment can lose what is in it."""
    repaired = _REPAIRED_BEFORE.get(version[:2], 1 << 30)  # type: ignore[arg-type]
    return _FAULTY <= version < _REPAIRED and version[2] < repaired


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
