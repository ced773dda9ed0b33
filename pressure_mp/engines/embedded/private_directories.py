"""Checks that a directory belongs to this user alone, and removal of directories that no server
uses any more."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress

from ...exceptions import EmbeddedServerError
from . import supervisor


def check(path: str) -> None:
    """Raise EmbeddedServerError for a directory in which another user could put a server.

    ``path`` has no symbolic links. The directory must belong to this process's user, no other user
    may write to it, and no other user can replace it by another one.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
    finally:
        os.close(fd)
    if found.st_uid != os.geteuid():
        raise _refusal(
            path, found, f"does not belong to {user(os.geteuid())}, the user of this process"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _refusal(path, found, "can be written to by other users", f"; or chmod go-w {path}")
    above = os.path.dirname(path)
    while above != path:
        found = os.stat(above)
        if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            raise _refusal(above, found, "can be written to, and so replaced, by every user")
        path, above = above, os.path.dirname(above)


def _refusal(path: str, found: os.stat_result, why: str, more: str = "") -> EmbeddedServerError:
    mode = stat.filemode(found.st_mode)
    return EmbeddedServerError(
        f"the directory {path} is not safe for an embedded server: it {why} (owner "
        f"{user(found.st_uid)}, mode {mode}). Use a directory that is yours alone{more}"
    )


def user(uid: int) -> str:
    """Return a user's name and number."""
    import pwd

    with suppress(KeyError):
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    return f"user {uid}"


def lock(directory: str) -> int | None:
    """Lock a directory itself, as its server does. Returns the open directory, which keeps the
    lock, and which a child process may inherit; None when another process has the lock, or the
    directory was removed just before."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if supervisor.try_lock(fd) and supervisor.is_file(fd, directory):
            kept, fd = fd, -1
            return kept
    finally:
        if fd >= 0:
            os.close(fd)
    return None


def clear(parent: str, prefix: str) -> None:
    """Remove the directories of servers that were killed: this user's directories in ``parent``
    whose names begin with ``prefix``, that have a server's log, and that no process has locked. A
    directory without a log belongs to another program, or is just being made."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(OSError):
                    _clear(entry)


def _clear(entry: os.DirEntry[str]) -> None:
    if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
        return
    fd = lock(entry.path)
    if fd is None:
        return
    try:
        if os.path.exists(os.path.join(entry.path, supervisor.LOG_NAME)):
            shutil.rmtree(entry.path, ignore_errors=True)
    finally:
        os.close(fd)
