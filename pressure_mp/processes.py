"""Processes, as other processes of the same host can know them."""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import socket
from pathlib import Path


@functools.cache
def host() -> str:
    """This boot of this machine, and this pid namespace: where a pid means one process."""
    marks = [_read(Path("/proc/sys/kernel/random/boot_id")), _link(Path("/proc/self/ns/pid"))]
    mark = hashlib.sha256("".join(marks).encode()).hexdigest()[:12]
    return f"{socket.gethostname()}-{mark}"


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # not on this system
        return ""


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


@functools.cache
def user() -> str:
    """This process: host, pid, and the second it began, since a pid is used again."""
    import psutil

    return f"{host()}/{os.getpid()}/{psutil.Process().create_time():.0f}"


_incarnations: dict[str, str] = {}


def incarnation() -> str:
    """This process, as no other was or will be: its user id, and 8 random hex digits."""
    me = user()
    if me not in _incarnations:
        # Of threads that come here at the same time, one decides for all.
        _incarnations.setdefault(me, f"{me}/{secrets.token_hex(4)}")
    return _incarnations[me]


def state(other: str) -> str:
    """``alive``, ``stopped`` or ``dead``; ``unknown`` for a process of another host.

    ``other`` is a user id, or the incarnation of a process. Stopped is one that got SIGSTOP.
    """
    where, *rest = other.split("/")
    if where != host() or len(rest) < 2:
        return "unknown"
    pid, began = rest[:2]
    import psutil

    try:
        process = psutil.Process(int(pid))
        # The start is reckoned from the boot time, which the clock's corrections can shift.
        if abs(process.create_time() - float(began)) >= 5:
            return "dead"
        status = process.status()
    except psutil.NoSuchProcess:
        return "dead"
    except psutil.AccessDenied:
        return "unknown"
    named = {psutil.STATUS_ZOMBIE: "dead", psutil.STATUS_STOPPED: "stopped"}
    return named.get(status, "alive")


def is_there(other: str) -> bool | None:
    """Whether any process has the pid of ``other``, which takes a hundredth of the time of
    :func:`state`; None for a process of another host."""
    where, *rest = other.split("/")
    if where != host() or len(rest) < 2:
        return None
    try:
        os.kill(int(rest[0]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def is_dead(other: str) -> bool:
    """Whether it is known that the process with this user id has ended."""
    return state(other) == "dead"


def has_ended(pid: int) -> bool:
    """Whether no process of this host has that pid, or only one that is not yet waited for.

    When a pid is used again the answer is no.
    """
    import psutil

    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:
        return False


os.register_at_fork(after_in_child=user.cache_clear)
os.register_at_fork(after_in_child=_incarnations.clear)
