"""A program that puts or gets one large item, and prints its peak of memory in sizes of that."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

from pressure_mp import Queue

SIZE = 32 << 20


def make(kind):
    return b"x" * SIZE if kind == "bytes" else np.ones(SIZE // 8)


def peak():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def main(url, name, side, kind):
    q = Queue(name=name, url=url)
    q.qsize()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is from now on
    before = peak()
    if side == "put":
        q.put(make(kind))
    else:
        q.get()
    print((peak() - before) / SIZE)


if __name__ == "__main__":
    main(*sys.argv[1:])
