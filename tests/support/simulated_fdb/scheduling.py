"""Clients as threads, one of which goes on. At each call to the cluster it is drawn which one.

What the cluster does by itself, commits in flight among it, is drawn in the same way. Time is
simulated: it goes on a little with each step, and jumps if no client can go on.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

#: Microseconds that pass at most between two steps, and for which a client or a job stands still.
_PACE = 300
_LONGEST_STALL = 30_000
#: The name of the threads of clients.
CLIENT = "simulated client"


class Died(BaseException):
    """Comes in a client that was killed, at each call to the cluster."""


class Interrupted(BaseException):
    """Comes in a client at one call to the cluster, as an exception of a signal handler does."""


class Stuck(AssertionError):
    """Clients wait, and nothing will come."""


class _Job(NamedTuple):
    """A job that no client does, and the time from which on it can be done."""

    begin: int
    number: int
    do: Callable[[], None]


class Client:
    """One program, in a thread of its own."""

    def __init__(self, program: Callable[[], Any], dies_at: int | None) -> None:
        self.program = program
        #: Its clock is so many seconds before the others'.
        self.ahead = 0.0
        self.steps = 0
        #: It is interrupted at that step.
        self.interrupted_at: int | None = None
        self.dies_at = dies_at
        self.is_over = False
        self.turn = threading.Lock()  # which another thread releases
        self.turn.acquire()
        #: What it waits for, and until when by the scheduler's clock.
        self.until: Callable[[], bool] | None = None
        self.end: int | None = None
        #: It does not go on before that, as a process that gets no time.
        self.stalled = 0

    @property
    def is_dead(self) -> bool:
        return self.dies_at is not None and self.steps >= self.dies_at


class Scheduler:
    """A driver that says which client goes on."""

    def __init__(self, rng: random.Random, most_steps: int = 100_000) -> None:
        self.rng = rng
        self.clients: list[Client] = []
        #: How probable it is that the one drawn stands still for a while.
        self.stalls = 0.0
        #: The client that goes on now.
        self.current: Client | None = None
        #: How often it was drawn which client goes on.
        self.moment = 0
        self._most_steps = most_steps
        self._now = 1_000_000
        #: Jobs that can be done now; and, as a heap, jobs that can be done later.
        self._jobs: list[_Job] = []
        self._timers: list[_Job] = []
        self._numbers = itertools.count()
        self._is_in_job = False
        self._failure: BaseException | None = None
        self._all_over = threading.Event()

    def clock(self) -> int:
        return self._now

    def post(self, job: Callable[[], None]) -> None:
        self._jobs.append(_Job(self._now, next(self._numbers), job))

    def after(self, seconds: float, job: Callable[[], None]) -> None:
        begin = self._now + int(seconds * 1_000_000)
        heapq.heappush(self._timers, _Job(begin, next(self._numbers), job))

    def fraction(self) -> float:
        return self.rng.random()

    def call_back(self, callback: Callable[[], None]) -> None:
        self.post(callback)

    def step(self) -> None:
        self.until(lambda: True)

    def wait(self, is_over: Callable[[], bool]) -> None:
        self.until(is_over)

    def until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Let others go on until a condition is true, or so much time is over; return whether it
        is true."""
        client = self.current
        if self._is_in_job:
            return condition()
        if client is None:  # no other client is there yet, or any more
            while not condition():
                self._do_one()
            return True
        client.steps += 1
        self._check(client)
        client.until = condition
        client.end = None if seconds is None else self._now + int(seconds * 1_000_000)
        self._next(client)
        client.until = client.end = None
        self._check(client)
        return condition()

    def _check(self, client: Client) -> None:
        if client.is_dead or self._failure is not None:
            raise Died
        if client.interrupted_at is not None and client.steps >= client.interrupted_at:
            client.interrupted_at = None
            raise Interrupted

    def add(self, program: Callable[[], Any], dies_at: int | None = None) -> Client:
        """Have a program run, which dies at that step."""
        client = Client(program, dies_at)
        self.clients.append(client)
        return client

    @contextmanager
    def interrupting(self, steps: int | None) -> Iterator[None]:
        """Interrupt the client that runs after so many steps, if the block lasts as long."""
        client = self.current
        assert client is not None
        client.interrupted_at = None if steps is None else client.steps + steps
        try:
            yield
        finally:
            client.interrupted_at = None

    def run(self) -> None:
        """Run the programs to their ends. Raises what one of them raised; and Stuck, if clients
        wait for what does not come."""
        threads = [
            threading.Thread(target=self._run, args=(client,), daemon=True, name=CLIENT)
            for client in self.clients
        ]
        for thread in threads:
            thread.start()
        self._next(None)
        self._all_over.wait()
        for thread in threads:
            thread.join()
        self.current = None
        if self._failure is not None:
            raise self._failure
        self.clients.clear()

    def settle(self) -> None:
        """Do what the cluster still has to do."""
        while self._jobs or self._timers:
            self._do_one()

    def _do_one(self) -> None:
        job = self._draw()
        assert isinstance(job, _Job)
        self._do(job)

    def _run(self, client: Client) -> None:
        client.turn.acquire()
        try:
            self._check(client)
            client.program()
        except Died:
            pass
        except BaseException as error:
            self._failure = self._failure or error
        client.is_over = True
        self._next(client)

    def _next(self, client: Client | None) -> None:
        """Give the turn to the next, and come back when it is this client's again."""
        try:
            while isinstance(chosen := self._draw(), _Job):
                self._do(chosen)
        except BaseException as failure:
            self._failure = self._failure or failure
            chosen = next((one for one in self.clients if not one.is_over), None)
        if chosen is client and client is not None and not client.is_over:
            return
        self.current = chosen
        if chosen is None:
            self._all_over.set()
        else:
            chosen.turn.release()
        if client is not None and not client.is_over:
            client.turn.acquire()

    def _do(self, job: _Job) -> None:
        self._is_in_job = True
        try:
            job.do()
        finally:
            self._is_in_job = False

    def _draw(self) -> Client | _Job | None:
        """A client that can go on, or a job; None when all clients are over."""
        left = [client for client in self.clients if not client.is_over]
        if self.clients and not left:
            return None
        self.moment += 1
        if self.moment > self._most_steps:
            raise Stuck("clients go on for ever")
        self._now += self.rng.randrange(_PACE)
        while True:
            able, jobs = self._able(left), self._jobs
            number = self.rng.randrange(len(able) + len(jobs))
            chosen = able[number] if number < len(able) else jobs.pop(number - len(able))
            if self.rng.random() >= self.stalls:
                return chosen
            self._stall(chosen)

    def _able(self, left: list[Client]) -> list[Client]:
        """The clients that can go on. If none can, and there is no job, time passes until then."""
        while True:
            while self._timers and self._timers[0].begin <= self._now:
                self._jobs.append(heapq.heappop(self._timers))
            able = [client for client in left if self._can_go_on(client)]
            if able or self._jobs:
                return able
            self._pass_time(left)

    def _stall(self, chosen: Client | _Job) -> None:
        until = self._now + self.rng.randrange(_LONGEST_STALL)
        if isinstance(chosen, Client):
            chosen.stalled = until
        else:
            heapq.heappush(self._timers, chosen._replace(begin=until))

    def _can_go_on(self, client: Client) -> bool:
        begin = self._begin(client)
        return self._failure is not None or (begin is not None and begin <= self._now)

    def _begin(self, client: Client) -> int | None:
        """From when on it can go on, as far as that is known."""
        if client.until is None or client.until():
            return client.stalled
        return None if client.end is None else max(client.end, client.stalled)

    def _pass_time(self, left: list[Client]) -> None:
        begins = [begin for client in left if (begin := self._begin(client)) is not None]
        begins += [job.begin for job in self._timers[:1]]
        if not begins:
            raise Stuck("clients wait, and nothing will come")
        self._now = max(self._now, min(begins))
