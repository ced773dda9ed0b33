"""What processes do in the tests of descriptors."""

from __future__ import annotations

import os
import stat
from multiprocessing.connection import wait

from waiting import LIMIT


def put_when_asked(q, asked):
    asked.wait()
    q.put(os.getpid())
    q.close()


def pipe_of(number):
    """What tells the pipe that is open under that number from every other; None for no pipe."""
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISFIFO(status.st_mode) else None


def get_by_descriptor(q, number, parents, results):
    # The number may be that of something else by now.
    assert parents is None or pipe_of(number) != parents, "the parent's pipe is open here"
    wait([q._reader], LIMIT)
    results.put(q.get())
