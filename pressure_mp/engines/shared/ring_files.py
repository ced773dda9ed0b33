"""The files with the items of queues, which this user's processes on this host share."""

from __future__ import annotations

import fcntl
import os
import resource
import threading
from contextlib import suppress

from ... import interrupts, lifecycle
from ...exceptions import BrokerError
from ...identity import shared_folder
from ..contract.brokers import QueueSummary
from . import linux
from .deliveries import HoldingRing
from .layout import HERE, MOVED, USE

#: The environment variable that a program sets to 0 to keep all items at the broker.
VARIABLE = "PRESSURE_SHARED_MEMORY"
_BEGIN = "items,"
#: Seconds for which an unused file stays: a handle may be on its way to a process.
_OLD = 60

#: At most one of so many files that a process may have open is a ring.
_SHARE = 4

_lock = threading.RLock()
#: The rings that this process uses. Closing a file releases all locks that this process has on it:
#: so a ring stays until its queue has ended, or its items were moved.
_rings: dict[str, HoldingRing] = {}


def create(name: str, bound: int) -> HoldingRing | None:
    """Make the ring of a new queue; return None where there is no room for it, or no shared
    memory."""
    if (
        not linux.EXISTS
        or os.environ.get(VARIABLE) == "0"
        or not os.path.isdir(shared_folder.MEMORY)
    ):
        return None
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and len(_rings) >= files // _SHARE:
        return None
    try:
        folder = shared_folder.find(make=True)
        shared_folder.sweep(folder, _OLD, _remove)
        with _lock:
            return _rings.setdefault(name, HoldingRing(_path(folder, name), bound))
    except (OSError, ValueError) as error:
        if interrupts.is_from_outside(error):
            raise
        return None


def find(name: str) -> HoldingRing | None:
    """Find the ring of a queue, if it has one on this host. Raises OSError when it cannot be
    opened."""
    found = _rings.get(name)
    if found is None and linux.EXISTS:
        try:
            folder = shared_folder.find()
        except OSError as error:
            if interrupts.is_from_outside(error):
                raise
            return None  # this user has no files
        try:
            with _lock:
                found = _rings.get(name) or _open(folder, name)
        except FileNotFoundError:
            return None
    if found is not None and found.state == MOVED:
        _rings.pop(name, None)
    return found


def _open(folder: str, name: str) -> HoldingRing:
    path = _path(folder, name)
    os.lstat(path)  # needs no descriptor: without a free one, no open tells that there is no file
    made = HoldingRing(path)
    found = _rings.setdefault(name, made)
    if found is not made:  # a signal handler came in between; closing the file releases its locks
        del made
        found.use()
    return found


def add_counts(summary: QueueSummary) -> QueueSummary:
    """Replace the broker's counts of a queue by its file's counts, if this process can see its
    items there. Waits for no process, so what is taken or acknowledged meanwhile may count or not.

    A file that this process does not use is closed again: a program that lists queues for days
    keeps no file of a queue that has ended."""
    if not linux.EXISTS:
        return summary
    with _lock:
        ring = _rings.get(summary.name)
        try:
            if ring is None:
                ring = HoldingRing(_path(shared_folder.find(), summary.name))
            if ring.state != HERE:
                return summary
            return _with_counts(summary, ring)
        except (OSError, ValueError, BrokerError) as error:
            if interrupts.is_from_outside(error):
                raise
            return summary
        finally:
            del ring
            # A signal handler may have begun to use the file: the close released its lock.
            if (used := _rings.get(summary.name)) is not None:
                used.use()


def _with_counts(summary: QueueSummary, ring: HoldingRing) -> QueueSummary:
    length, put = ring.length, ring.last  # in this order, so that no item is gone before it came
    return summary._replace(
        length=length,
        maxsize=ring.bound,
        closed=ring.is_closed,
        produced=put,
        consumed=ring.first if ring.drops else put - length,
        in_flight=ring.held,
    )


def remove(name: str) -> None:
    """Remove the file of a queue that has ended."""
    _rings.pop(name, None)
    with suppress(OSError):
        os.unlink(_path(shared_folder.find(), name))


def _path(folder: str, name: str) -> str:
    return os.path.join(folder, _BEGIN + name.strip("{}"))


def _remove(path: str) -> None:
    # Closing a file that this process uses would release its locks.
    is_used = path in {ring.path for ring in list(_rings.values())}
    if is_used or not os.path.basename(path).startswith(_BEGIN):
        return
    with open(path, "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, USE)
        os.unlink(path)


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for ring in list(_rings.values()):
        ring.after_fork()


lifecycle.register("forget memory", _after_fork_in_child)
