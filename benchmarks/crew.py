"""The processes of one case: they start together, and a failure of one ends them all."""

from __future__ import annotations

import itertools
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier, Lock
from typing import Any

from .context import CONTEXT
from .peers.base import Ends, SharedQueue

#: When more members than this do the same, a process has several, each in a thread of its own.
MOST_PROCESSES = 64
#: Seconds after which a case has failed.
LIMIT = 30.0


class CaseFailed(Exception):
    """A case that has no figure, and why."""


class Member:
    """What a job knows of the others of its case."""

    def __init__(self, connecting: Lock, ready: Barrier, closing: list[Callable[[], object]]):
        self._connecting = connecting
        self._ready = ready
        self._closing = closing

    def connect(self, queue: SharedQueue) -> Ends:
        """The queue's methods. They are closed when all members of this process are done."""
        with self._connecting:  # one by one: not every peer can take 256 at once
            ends = queue.connect()
        self._closing.append(ends.close)
        return ends

    def start(self) -> float:
        """Wait until all members are ready; the time, by ``time.perf_counter``."""
        self._ready.wait()
        return time.perf_counter()


@dataclass(frozen=True)
class Job:
    """A function that is called with its Member and these arguments; it returns the answer."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def perform(jobs: Sequence[Job]) -> list[Any]:
    """Run each job in a process of its own, or nearly so; their answers, in the same order."""
    shared = (CONTEXT.Lock(), CONTEXT.Barrier(len(jobs)))
    members: dict[Connection, BaseProcess] = {}
    try:
        for together in _groups(jobs):
            receiver, sender = CONTEXT.Pipe(duplex=False)
            arguments = (together, *shared, sender)
            process = CONTEXT.Process(target=_process, args=arguments, daemon=True)
            process.start()
            members[receiver] = process
            sender.close()
        answers = _collect(list(members))
        for process in members.values():
            process.join(LIMIT)
        return answers
    finally:
        for receiver, process in members.items():
            receiver.close()
            if process.is_alive():
                process.kill()
            process.join()


def _groups(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """The jobs of each process. Only those that do the same share one."""
    for _, found in itertools.groupby(jobs, lambda job: job.function):
        same = list(found)
        each = math.ceil(len(same) / MOST_PROCESSES)
        for begin in range(0, len(same), each):
            yield same[begin : begin + each]


def _collect(receivers: list[Connection]) -> list[Any]:
    answers: dict[Connection, Any] = {}
    deadline = time.monotonic() + LIMIT
    while len(answers) < len(receivers):
        waiting = [receiver for receiver in receivers if receiver not in answers]
        ready = connection.wait(waiting, max(0, deadline - time.monotonic()))
        if not ready:
            raise CaseFailed(f"{len(waiting)} processes did not answer in {LIMIT:.0f} s")
        for receiver in ready:
            assert isinstance(receiver, Connection)
            try:
                failure, found = receiver.recv()
            except EOFError:
                raise CaseFailed("a process ended without an answer") from None
            if failure:
                raise CaseFailed(failure)
            answers[receiver] = found
    if None in answers.values():
        raise CaseFailed("the members did not start together")
    return [answer for receiver in receivers for answer in answers[receiver]]


def _process(jobs: Sequence[Job], connecting: Lock, ready: Barrier, sender: Connection) -> None:
    """Send what failed or None, and the answers, or None when others did not start."""
    answers: list[Any] = [None] * len(jobs)
    failures: list[str] = []
    closing: list[Callable[[], object]] = []
    broken = False

    def run(index: int) -> None:
        nonlocal broken
        job = jobs[index]
        try:
            answers[index] = job.function(Member(connecting, ready, closing), *job.arguments)
        except threading.BrokenBarrierError:
            broken = True  # the one that failed says why
        except Exception:
            failures.append(traceback.format_exc())
            ready.abort()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(1, len(jobs))]
    for thread in threads:
        thread.start()
    run(0)
    for thread in threads:
        thread.join()
    try:
        for close in closing:
            close()
    except Exception:
        failures.append(traceback.format_exc())
    sender.send((failures[0] if failures else None, None if broken else answers))
