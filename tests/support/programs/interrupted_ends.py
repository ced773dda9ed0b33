"""Forks processes, each of which is interrupted at another place of its end.

``python interrupted_ends.py URL NAME FIRST EVERY`` prints how many places there are. It fails
when a process does not end, or when others do not find what they are promised.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing import util
from typing import Any

from interrupting import Interrupter
from waiting import LIMIT, until

from pressure_mp import JoinableQueue, Queue

#: What a process ends with that was interrupted in its end, and one that was not.
INTERRUPTED, WHOLE = 3, 4


def use_and_end(url: str, name: str, number: int) -> None:
    """A queue of each kind that is left behind; then what an ending process does."""
    joinable = JoinableQueue(0, f"{name}-joinable", url=url)
    assert joinable.get() == 1  # not acknowledged
    sending = Queue(0, f"{name}-sending", url=url, buffering=10, prefetch=10)
    sending.put(2)
    anonymous = Queue(url=url, prefix=name, authkey=b"key")
    anonymous.put(3)
    with Interrupter() as interrupter:
        interrupter.call(number, util._exit_function)
    os._exit(INTERRUPTED if interrupter.came else WHOLE)


def status_of(child: int) -> int:
    """How it ended; it must."""
    found: list[int] = []

    def has_ended() -> bool:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            found.append(os.waitstatus_to_exitcode(status))
        return bool(pid)

    until(has_ended, LIMIT)
    return found[0]


def in_child(act: Callable[..., None], *args: Any) -> int:
    child = os.fork()
    if not child:
        try:
            act(*args)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    return status_of(child)


def main(url: str, name: str, first: int, every: int) -> None:
    joinable = JoinableQueue(0, f"{name}-joinable", url=url)
    sending = Queue(0, f"{name}-sending", url=url)
    for number in range(first, 100_000, every):
        joinable.put(1)
        status = in_child(use_and_end, url, name, number)
        assert status in (INTERRUPTED, WHOLE), f"status {status} at place {number}"
        assert joinable.get(timeout=LIMIT) == 1, f"at place {number}"
        joinable.task_done()
        joinable.join()
        sent = [sending.get() for _ in range(sending.qsize())]
        assert sent in ([[], [2]] if status == INTERRUPTED else [[2]]), f"{sent} at place {number}"
        if status == WHOLE:
            print(number)
            return
    raise AssertionError("more than 100,000 places")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
