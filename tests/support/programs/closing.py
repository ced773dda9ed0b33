"""What a process does that closes all descriptors, as daemons do, and has files of its own then."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import struct
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pressure_mp.engines.shared import ring_files
from pressure_mp.engines.shared.locks import BUSY

#: What a daemon calls, in this order. The last one moves the items to the broker.
CALLS: dict[str, Callable[[Any], Any]] = {
    "put": lambda queue: queue.put("from the daemon"),
    "get": lambda queue: queue.get(timeout=20),
    "put_many": lambda queue: queue.put_many(range(100, 110)),
    "get_many": lambda queue: len(queue.get_many(3, timeout=20)),
    "peek": lambda queue: len(queue.peek(2)),
    "qsize": lambda queue: queue.qsize() > 0,
    "full": lambda queue: queue.full(),
    "stats": lambda queue: queue.stats().length > 0,
    "shutdown": lambda queue: queue.shutdown(),
}


class OwnFiles:
    """Files of the program's own, with locks on their first three bytes."""

    def __init__(self, folder: str) -> None:
        self._open = {}
        for number in range(60):
            path = os.path.join(folder, f"own {number}")
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            os.write(descriptor, b"own")
            fcntl.lockf(descriptor, fcntl.LOCK_EX, 3, 0)
            self._open[path] = descriptor

    def check(self, faults: list[str], after: str) -> None:
        """Note each file that was replaced or changed."""
        for path, descriptor in self._open.items():
            try:
                if not os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    faults.append(f"after {after}: {path} is another file")
                if Path(path).read_bytes() != b"own":
                    faults.append(f"after {after}: {path} has other content")
                # The look has closed the file, and so released the locks.
                fcntl.lockf(descriptor, fcntl.LOCK_EX, 3, 0)
            except OSError as error:
                faults.append(f"after {after}: {path} ({descriptor}): {error}")

    def check_locks(self, faults: list[str], after: str) -> None:
        """The same of the locks, which only another process sees."""
        pid, seen = os.getpid(), -1
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                seen = sum(locks(path) != [(pid, 0, 3)] for path in self._open)
            os._exit(seen if seen >= 0 else 99)
        wrong = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if wrong:
            faults.append(f"after {after}: {wrong} files have other locks")


def locks(path: str) -> list[tuple[int, int, int]]:
    """The locks that other processes have on a file: the process, the begin, the length."""
    found, start = [], 0
    with open(path, "r+b") as file:
        while True:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, 0, 0)
            kind, _, begin, size, pid = struct.unpack(
                "hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked)
            )
            if kind == fcntl.F_UNLCK:
                return found
            found.append((pid, begin, size))
            if not size:
                return found
            start = begin + size


def be_a_daemon(queue: Any, folder: str) -> None:
    """Close all descriptors, open files, use the queue, and drop it; write what went wrong to the
    file "faults"."""
    os.setsid()
    # What only threads of the parent had is garbage here, and would close a file of this process.
    gc.collect()
    os.closerange(3, 4096)
    faults: list[str] = []
    own = OwnFiles(folder)

    def check(after: str) -> None:
        own.check_locks(faults, after)
        own.check(faults, after)

    for name, call in CALLS.items():
        try:
            call(queue)
        except Exception:  # standard error is closed
            faults.append(f"{name} raised {traceback.format_exc()}")
        check(name)
    queue.close()
    del queue
    ring_files._rings.clear()
    gc.collect()
    check("the end of the queue")
    Path(folder, "faults").write_text(json.dumps(faults))


def use_the_locks(queue: Any, asked: str, told: str) -> None:
    """Close all descriptors. Then, for each line of a named pipe, "putting" or "taking", try once
    to have that lock until the next line; tell through another pipe whether so."""
    ring = queue._at.binding.items.ring
    gc.collect()
    os.closerange(3, 4096)
    with open(asked) as words, open(told, "w", buffering=1) as answers:

        def keep() -> None:
            answers.write("has it\n")
            words.readline()

        while lock := words.readline().strip():
            if getattr(ring, lock).run(keep, 0.0) is BUSY:
                answers.write("busy\n")
            else:
                answers.write("had it\n")
