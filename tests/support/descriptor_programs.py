"""What processes do in the tests of descriptors."""

from __future__ import annotations

import os
from multiprocessing.connection import wait

import pytest
from waiting import LIMIT


def put_when_asked(q, asked):
    asked.wait()
    q.put(os.getpid())
    q.close()


def get_by_descriptor(q, kept, results):
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(kept)  # it is the parent's
    wait([q._reader], LIMIT)
    results.put(q.get())
