"""The processes of a demo: started together, watched, and never left behind."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Process, get_start_method, parent_process, resource_tracker
from typing import Any

from .stages import AnyQueue

#: Seconds between two looks at the processes.
GLANCE = 0.2


class ProcessFailed(Exception):
    """One of the processes ended before its work was done."""


class Processes:
    """Processes that run the stages of a pipeline."""

    def __init__(self) -> None:
        self._processes: list[Process] = []

    def add(self, name: str, stage: Callable[..., None], *args: Any) -> None:
        """Add a process that will call ``stage(*args)``."""
        process = Process(target=attended, args=(stage, *args), name=name)
        self._processes.append(process)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the processes in this block; when the block raises, kill them."""
        try:
            with without_interrupts():
                for process in self._processes:
                    process.start()
            yield
        except BaseException:
            with without_interrupts():
                for process in self._processes:
                    if process.pid is not None:
                        process.kill()
            raise
        finally:
            for process in self._processes:
                if process.pid is not None:
                    process.join()

    def wait_for(self, results: AnyQueue, glance: Callable[[], None]) -> Any:
        """Get one item; call ``glance`` every now and then meanwhile.

        Raises ProcessFailed as soon as one of the processes has failed: then no item may come.
        """
        while True:
            try:
                return results.get(timeout=GLANCE)
            except queue.Empty:
                self._check()
                glance()

    def _check(self) -> None:
        for process in self._processes:
            if process.exitcode:
                raise ProcessFailed(
                    f"the {process.name} process (pid {process.pid}) {_fate(process.exitcode)}, "
                    "so the demo cannot go on"
                )


def _fate(exitcode: int) -> str:
    if exitcode > 0:
        return f"failed with exit code {exitcode}"
    return f"was killed by {signal.Signals(-exitcode).name}"


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from processes that start in this block: it goes to all processes, but only one
    is to act."""
    if get_start_method() != "fork":
        # If it were started with the first process, it would unblock the signal.
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def attended(stage: Callable[..., None], *args: Any) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    stage(*args)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
