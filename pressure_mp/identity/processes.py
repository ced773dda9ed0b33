"""Processes, as other processes of the same host can know them.

Whether a process lives is decided by what the kernel says of its pid and of its start, and by
nothing that moves with a clock. If the kernel does not show a process, as with ``/proc`` mounted
``hidepid``, its state is not known: only a pid that does not exist has ended for sure.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from typing import Literal, NamedTuple

from .. import lifecycle

State = Literal["alive", "stopped", "dead", "unknown"]

#: The part behind the host in a user id, and in all names that begin with one: pid and start.
_PROCESS = re.compile(r"/(\d{1,9})/(\d*)(?:/.*)?", re.DOTALL)

#: Whether two different starts always mean two processes. Linux counts the ticks since boot;
#: elsewhere the start is a time, which may be told differently after a correction of the clock.
_STARTS_NEVER_MOVE = sys.platform == "linux"

#: The places of the number of threads and of the start, counted behind the name in
#: ``/proc/pid/stat``. proc_pid_stat(5) has them as fields 20 and 22.
_THREADS, _START = 17, 19


def is_pool_worker() -> bool:
    """Tell whether this is a worker of a ``multiprocessing.Pool``, which ends its workers with a
    signal as soon as the results are there. The standard library marks a worker by its name."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and "PoolWorker" in module.current_process().name


_once: dict[str, str] = {}


def _drawn_once(what: str, draw: Callable[[], str]) -> str:
    if what not in _once:
        # Of threads that come here at the same time, one decides for all.
        _once.setdefault(what, draw())
    return _once[what]


def mark() -> str:
    """Return a text for where a pid means one process: this boot of this machine, this pid and time
    namespace.

    Where that cannot be read, each process has a mark of its own. Then it knows nothing of any
    other process, and does not take processes of another machine for its own host's.
    """
    return _drawn_once("mark", _mark)


def _mark() -> str:
    import hashlib  # it loads OpenSSL, so not when this package is imported

    try:
        return hashlib.sha256(_boot().encode()).hexdigest()[:12]
    except OSError:
        return os.urandom(6).hex()


def _boot() -> str:
    """Return a text that only this boot and these namespaces have. Raises OSError."""
    if sys.platform == "darwin":
        return _boot_session()
    boot = _read("/proc/sys/kernel/random/boot_id").decode().strip()
    if not boot:
        raise OSError("boot_id is empty")
    try:
        # In another time namespace the kernel tells other starts.
        clocks = os.readlink("/proc/self/ns/time")
    except FileNotFoundError:  # Linux before 5.6 has none
        clocks = ""
    return boot + os.readlink("/proc/self/ns/pid") + clocks


def _boot_session() -> str:
    import ctypes

    text = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(text))
    failed = ctypes.CDLL(None).sysctlbyname(
        b"kern.bootsessionuuid", text, ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    if failed or not text.value:
        raise OSError("kern.bootsessionuuid cannot be read")
    return text.value.decode()


@functools.cache
def host() -> str:
    """Return this machine's name and :func:`mark`: processes of the same host can know of each
    other."""
    return f"{os.uname().nodename}-{mark()}"


@functools.cache
def user() -> str:
    """Return the name of this process: host, pid, and when it was started, since a pid is used
    again."""
    return f"{host()}/{os.getpid()}/{start()}"


@functools.cache
def start() -> str:
    """Return when this process was started, as :func:`state` compares it; empty when it is not
    known."""
    seen = _see(None)
    return seen.start if seen else ""


def incarnation() -> str:
    """Return a name of this process that no other had or will have: its user id, and 8 random hex
    digits."""
    found = _once.get("incarnation")
    return found or _drawn_once("incarnation", lambda: f"{user()}/{os.urandom(4).hex()}")


def state(id: str) -> State:
    """Return whether a process lives, as far as this process can know. ``stopped``: it got SIGSTOP.

    ``id`` is a user id or begins with one, as an incarnation or a ticket does. ``dead`` is known
    for sure. ``unknown`` is a process of another host, or one hidden from this process.
    """
    if id == user() or id.startswith(user() + "/"):
        return "alive"
    named = _named(id)
    if named is None:
        return "unknown"
    pid, noted = named
    seen = _see(pid) if _shows_our_pids() else None
    if seen is None:
        return "unknown" if _exists(pid) else "dead"
    if seen.start != noted and seen.state != "dead":
        return "dead" if noted and _STARTS_NEVER_MOVE else "unknown"
    return seen.state


def is_lost(seen: State, until: int, now: int) -> bool:
    """Tell whether the items of a process go back: it has ended; or its lease has, at ``until``,
    and it is not seen to run.

    A process of this host that is seen to run keeps its items, with or without a lease: a call into
    C that holds Python's lock keeps its lease from being renewed, and loses nothing.
    """
    return seen == "dead" or (seen != "alive" and until < now)


def is_there(id: str) -> bool | None:
    """Tell whether any process has the pid of ``id``, which takes far less time than
    :func:`state`; None for a process of another host."""
    named = _named(id)
    return None if named is None else _exists(named[0])


def _named(id: str) -> tuple[int, str] | None:
    """Return the pid and start of a process of this host."""
    here = host()
    found = _PROCESS.fullmatch(id, len(here)) if id.startswith(here) else None
    return (int(found[1]), found[2]) if found else None


def _exists(pid: int) -> bool:
    """Tell whether a process has that pid, shown or not. False is certain."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        pass
    return True


#: More bytes than any of the files in /proc has that are read here.
_MOST = 1 << 16


class _Seen(NamedTuple):
    start: str
    state: State


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # open() is gone when modules are taken apart
    try:
        return os.read(fd, _MOST)
    finally:
        os.close(fd)


if sys.platform == "linux":

    def _see(pid: int | None) -> _Seen | None:
        """Return what the kernel shows of a process, None being this one; None when it shows
        nothing, whether the process exists or not."""
        try:
            text = _read(f"/proc/{pid or 'self'}/stat")
        except OSError:
            return None
        # Before that stands the program's name in parentheses, which can be any text.
        fields = text.rpartition(b") ")[2].decode().split()
        if len(fields) <= _START:
            return None
        named: dict[str, State] = {"T": "stopped", "Z": "dead", "X": "dead"}
        state = named.get(fields[0], "alive")
        if state == "dead" and int(fields[_THREADS]) > 1:
            state = "unknown"  # its first thread has ended; the others may run on
        return _Seen(fields[_START], state)

    def _shows_our_pids() -> bool:
        """Tell whether the numbers in /proc are pids of our namespace: /proc may show another."""
        try:
            status = _read("/proc/self/status")
        except OSError:
            return False
        # One number for each namespace, from /proc's down to this process's.
        ours = status.partition(b"\nNSpid:")[2].partition(b"\n")[0]
        return ours.split() == [str(os.getpid()).encode()]

else:

    def _see(pid: int | None) -> _Seen | None:
        """Return what the kernel shows of a process, None being this one; None when it shows
        nothing, whether the process exists or not."""
        import psutil

        try:
            process = psutil.Process(pid)
            start = f"{process.create_time() * 1e6:.0f}"
            status = process.status()
        except psutil.ZombieProcess:
            return _Seen("", "dead")
        except psutil.Error:
            return None
        named: dict[str, State] = {
            psutil.STATUS_STOPPED: "stopped",
            psutil.STATUS_ZOMBIE: "dead",
        }
        return _Seen(start, named.get(status, "alive"))

    def _shows_our_pids() -> bool:
        return True


def _after_fork_in_child() -> None:
    _once.clear()
    for known in (host, user, start):
        known.cache_clear()


lifecycle.register("forget the process", _after_fork_in_child)
