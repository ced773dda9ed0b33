"""Notice the end of the program that reads the output, also while there is nothing to write."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import statuses


class Reader:
    """The program that reads the standard output, if that is a pipe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._is_gone = False
        #: While items are written, no signal ends the command: the write itself fails, and the
        #: written items have to be counted.
        self._is_writing = False

    def begin_writing(self) -> None:
        """Ignore the end of the reader until :meth:`check`."""
        self._is_writing = True

    def check(self) -> None:
        """End the command if the reader has ended."""
        self._is_writing = False
        self.end_command()

    def wait_for_end(self, output: int) -> None:
        """Wait until the reader has ended; then send the main thread a signal, which also ends a
        wait for the broker."""
        poll = select.poll()
        poll.register(output, 0)  # errors are reported even if they are not asked for
        poll.poll()
        with self._lock:
            if not self._is_over:
                self._is_gone = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGPIPE)

    def stop(self) -> None:
        """Send no signal from now on."""
        with self._lock:
            self._is_over = True

    def end_command(self, *_: Any) -> None:
        # The signal also comes when a broker has closed its connection.
        if self._is_gone and not self._is_writing:
            raise SystemExit(statuses.READER_GONE)


@contextmanager
def reader_of_output() -> Iterator[Reader]:
    """End the command in this block, in the main thread, when no program reads the standard output
    any more, if that is a pipe. A write alone would find that out only with the next item."""
    output = sys.stdout.fileno()
    reader = Reader()
    if not stat.S_ISFIFO(os.fstat(output).st_mode):
        yield reader
        return
    before = signal.signal(signal.SIGPIPE, reader.end_command)
    threading.Thread(target=reader.wait_for_end, args=(output,), daemon=True).start()
    try:
        yield reader
    finally:
        reader.stop()
        signal.signal(signal.SIGPIPE, before)
