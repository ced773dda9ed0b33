"""The processes of one case: they start together, and a failure of one ends them all."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier, Semaphore
from typing import Any

from .context import CONTEXT
from .peers.base import Ends, SharedQueue, nothing

#: Seconds after which a case has failed.
LIMIT = 60.0

#: How many connect at once; more would overflow the backlog of a BaseManager.
CONNECTING = 8
#: The answer of a member that could not start.
BROKEN = "broken"


class CaseFailed(Exception):
    """A case that has no figure, and why."""


class Member:
    """What a job knows of the others of its case."""

    def __init__(self, connecting: Semaphore, ready: Barrier):
        self._connecting = connecting
        self._ready = ready
        self._closing: list[Callable[[], object]] = []

    def connect(self, queue: SharedQueue) -> Ends:
        """The queue's methods; they are closed when the job is done."""
        with self._connecting:
            ends = queue.connect()
        self._closing.append(ends.close)
        return ends

    def start(self) -> float:
        """Wait until all members are ready; the time, by ``time.perf_counter``."""
        self._ready.wait()
        return time.perf_counter()

    def close(self) -> None:
        """Wait until the queues have all that was put."""
        while self._closing:
            self._closing.pop()()


@dataclass(frozen=True)
class Job:
    """A function that is called with its Member and these arguments; it returns the answer."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def perform(jobs: Sequence[Job], begin: Callable[[], None] = nothing) -> list[Any]:
    """Run each job in a process of its own, which first calls ``begin``; their answers, in the
    same order."""
    shared = (CONTEXT.Semaphore(CONNECTING), CONTEXT.Barrier(len(jobs)))
    members: dict[Connection, BaseProcess] = {}
    try:
        for job in jobs:
            receiver, sender = CONTEXT.Pipe(duplex=False)
            arguments = (begin, job, *shared, sender)
            members[receiver] = CONTEXT.Process(target=_process, args=arguments, daemon=True)
            members[receiver].start()
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
    if BROKEN in answers.values():
        raise CaseFailed("the members did not start together")
    return [answers[receiver] for receiver in receivers]


def _process(
    begin: Callable[[], None],
    job: Job,
    connecting: Semaphore,
    ready: Barrier,
    sender: Connection,
) -> None:
    """Send what failed or None, and the answer, or BROKEN when another did not start."""
    member = Member(connecting, ready)
    failure, answer = None, None
    try:
        begin()
        answer = job.function(member, *job.arguments)
        member.close()
    except threading.BrokenBarrierError:
        answer = BROKEN  # the one that failed says why
    except Exception:
        failure = traceback.format_exc()
        ready.abort()
    sender.send((failure, answer))
