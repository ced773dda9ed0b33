"""Call futex(2), which Python's library does not offer."""

from __future__ import annotations

import ctypes
import platform
import sys
import time
from typing import Any

#: The number of the system call on processors with a table of their own (``asm/unistd.h``), and on
#: processors with the generic table.
_NUMBERS = {"x86_64": 202, "ppc64le": 221, "ppc64": 221, "s390x": 238}
_GENERIC = 98
_machine = platform.machine()
_NUMBER = _NUMBERS.get(_machine, _GENERIC)
_WAIT, _WAKE = 0, 1

#: Whether this system has futexes, and writes numbers of 64 bits in one step.
EXISTS = sys.platform == "linux" and sys.maxsize > 1 << 32
#: Whether a processor sees the writes of another in their order, so that a step may do without a
#: lock ("Memory Ordering" in Intel's manual, volume 3).
IS_ORDERED = _machine == "x86_64"


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_syscall: Any = ctypes.CDLL(None, use_errno=True).syscall if EXISTS else None
if EXISTS:
    _syscall.restype = ctypes.c_long
    _syscall.argtypes = (
        ctypes.c_long,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_uint32,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_uint32,
    )


#: Libraries that replace ``time.sleep`` by a function that lets other greenlets run meanwhile.
_GREENLETS = ("gevent", "eventlet")
#: Seconds between two reads of the number in a greenlet, the first and the longest.
_FIRST_STEP, _LAST_STEP = 0.0005, 0.01


def wait(address: int, seen: int, seconds: float) -> bool:
    """Sleep while the 32-bit number at ``address`` is ``seen``: for at most ``seconds``, or until a
    signal comes. Returns whether :func:`wake` woke this thread."""
    if time.sleep.__module__.partition(".")[0] in _GREENLETS:
        return _wait_in_steps(address, seen, seconds)
    limit = _Timespec(int(seconds), int(seconds % 1 * 1e9))
    failed = _syscall(_NUMBER, address, _WAIT, seen & 0xFFFFFFFF, ctypes.addressof(limit), None, 0)
    return not failed


def _wait_in_steps(address: int, seen: int, seconds: float) -> bool:
    """Wait in a greenlet: a system call would block all other greenlets of its thread."""
    number, end, step = (
        ctypes.c_uint32.from_address(address),
        time.monotonic() + seconds,
        _FIRST_STEP,
    )
    while number.value == seen & 0xFFFFFFFF:
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(step, left))
        step = min(2 * step, _LAST_STEP)
    return True


def wake(address: int, number: int) -> int:
    """Wake up to ``number`` threads that sleep at ``address``; return how many slept."""
    woken: int = _syscall(_NUMBER, address, _WAKE, number, None, None, 0)
    return woken
