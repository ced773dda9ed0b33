"""The presence of this process in a queue of tasks: the tasks that it has, and the tasks of ended
processes."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..effects import Operation
from ..engines.contract.items import MOST_ITEMS
from ..engines.contract.replies import Outcome
from ..engines.contract.session import Engine
from ..engines.contract.task_records import HeldTask
from ..engines.contract.tasks import Refusal
from ..engines.contract.tasks import Takers as TakersThere
from ..exceptions import QueueDoesNotExistError
from ..identity.processes import incarnation, state
from ..in_flight import Claim
from ..operations.task_leases import TaskLeaseOperations
from ..operations.task_queue import TASKS
from . import lease_thread
from .announcing import Announced, Announcements
from .lease import Lease, LeasedItems, find

_GONE = "the process that had taken it ended"
_SILENT = "the process that had taken it did not answer for longer than its lease"
_LOST = "it was taken, but the reply did not arrive"
#: Seconds for which a task without a ttr stays with this process while a transaction is to
#: acknowledge it.
_LONGEST_TRANSACTION = 60.0
#: Is called with the reason why this process no longer has a task.
Lost = Callable[[Refusal], object]
#: The most tasks that stay with this process after a transaction of its was to acknowledge them.
MOST_UNSURE = 10_000


class Takers(LeasedItems):
    """The tasks of this process in one queue."""

    def __init__(self, engine: Engine, name: str, discipline: str = TASKS) -> None:
        self._operations = TaskLeaseOperations(name)
        self.lease = Lease(engine, name, discipline, self)
        self.reset()

    def reset(self) -> None:
        self._guard = threading.RLock()
        #: The worker processes that this process has started.
        self._workers: set[str] = set()
        #: Of each task that this process has: the number of the take, and how long that can last,
        #: on the monotonic clock.
        self._held: dict[bytes, tuple[int, float]] = {}
        #: The tasks that transactions are to acknowledge, or did, in the order of these calls.
        self._unsure: dict[HeldTask, None] = {}
        #: Since when each task is watched, on the monotonic clock, and the functions to call.
        self._watched: dict[HeldTask, tuple[float, list[Lost]]] = {}
        #: See :meth:`release_later`.
        self._to_release: dict[HeldTask, str | None] = {}
        self._announcements = Announcements()

    @property
    def has_something(self) -> bool:
        return self.has_deliveries or bool(self._announcements) or self.releases_later

    @property
    def has_deliveries(self) -> bool:
        with self._guard:
            self._forget_overdue()
            return bool(self._held)

    @contextlib.contextmanager
    def announced(self, concurrency: int, tubes: Sequence[str]) -> Iterator[Announced]:
        """Have all programs see a worker here, which processes so many tasks of these tubes at a
        time, while the block runs; its number is for its takes. Does no I/O."""
        announcements = self._announcements
        worker = announcements.begin(concurrency, tubes)
        try:
            self.lease.keep()
            lease_thread.keep_looking(self.lease)  # also where the queue ends with this process
            yield worker
        finally:
            if announcements.end(worker):
                lease_thread.look_now(self.lease)

    def _forget_overdue(self) -> None:
        now = time.monotonic()
        for task in [task for task, (_, until) in list(self._held.items()) if until < now]:
            self._held.pop(task, None)

    def call_of(self, task: bytes) -> int:
        """Return the number of the take that has a task, 0 when this process does not have it."""
        return self._held.get(task, (0, 0.0))[0]

    def look_after(self, worker: str) -> None:
        """Renew the lease of a worker process, too, while it is seen to run: a call that keeps
        Python's lock keeps the worker from that."""
        self._workers.add(worker)
        self.lease.look_for(worker)

    def leave_alone(self, worker: str) -> None:
        """Renew the lease of a worker process no longer: it has ended."""
        self._workers.discard(worker)
        self.lease.leave_off(worker)

    def give_back(self, worker: str, why: str) -> int:
        """Requeue the tasks of a worker process that has ended; return how many. Does not wait for
        a broker that does not answer. Raises BrokerUnavailable, QueueDoesNotExistError."""
        return self.lease.run_now(self._operations.requeue(worker, why))

    def watch(self, task: HeldTask, lost: Lost) -> None:
        """Have ``lost`` called, in any thread, when this process finds that it no longer has that
        task: at the next look that is an interval away, or at once if this process removes it. Ends
        when the task is settled."""
        with self._guard:
            if self.call_of(task[0]) == task[1]:
                self._watched.setdefault(task, (time.monotonic(), []))[1].append(lost)

    def leave_unwatched(self, task: HeldTask) -> None:
        """Watch a task no longer."""
        with self._guard:
            self._watched.pop(task, None)

    def note_removed(self, task: bytes) -> None:
        """Note that this process has removed a task from the queue."""
        self._tell_lost((task, self.call_of(task)), Outcome.ABSENT)

    def _tell_lost(self, task: HeldTask, why: Refusal) -> None:
        with self._guard:
            _, watchers = self._watched.pop(task, (0.0, []))
            self._lose([task])
            for lost in watchers:
                lost(why)

    def _to_ask_about(self) -> list[HeldTask]:
        """Return the tasks that are watched for longer than an interval. Of many the first: the
        others have their turn when these are settled."""
        before = time.monotonic() - self.lease.interval
        with self._guard:
            due = [task for task, (since, _) in self._watched.items() if since <= before]
        return due[:MOST_ITEMS]

    def drop(self, claim: Claim) -> None:
        with self._guard:
            self._lose([(task, claim.call) for task in list(self._held)])

    @property
    def releases_later(self) -> bool:
        """Whether there are such tasks as :meth:`release_later` notes."""
        return bool(self._to_release)

    def release_later(self, tasks: Mapping[HeldTask, str | None]) -> None:
        """Note that this process no longer has these tasks, and release each with its error when
        the broker answers; None: no handler began it."""
        with self._guard:
            self._lose(tasks)
            self._to_release |= tasks
        self.lease.keep()

    def requeue_of(self, call: int) -> Operation[Any]:
        return self._operations.requeue(incarnation(), _LOST, call=call)

    def keep(self, tasks: Sequence[bytes], call: int, longest: int) -> None:
        """Note that this process has these tasks, by the take of that number, for so many
        milliseconds."""
        until = time.monotonic() + longest / 1000 + 1 if longest else float("inf")
        with self._guard:
            for task in tasks:
                self._held[task] = call, until
        self.lease.keep()

    def lose(self, tasks: Iterable[HeldTask]) -> None:
        """Note that this process no longer has the tasks by those takes."""
        with self._guard:
            self._lose(tasks)

    def lose_later(self, tasks: Iterable[HeldTask]) -> None:
        """Note that this process loses these tasks when a transaction commits, which it is not
        told. The transaction may fail: so the tasks are kept as long as this process can have them;
        without a ttr, for a minute; and only the latest ``MOST_UNSURE``. They are watched no
        longer: whether one was removed or acknowledged is not known."""
        soon = time.monotonic() + _LONGEST_TRANSACTION
        with self._guard:
            for task, call in tasks:
                self._watched.pop((task, call), None)
                found, until = self._held.get(task, (0, 0.0))
                if found == call and until == float("inf"):
                    self._held[task] = call, soon
                self._unsure.pop((task, call), None)
                self._unsure[task, call] = None
                if len(self._unsure) > MOST_UNSURE:
                    oldest = next(iter(self._unsure))
                    del self._unsure[oldest]
                    self._lose([oldest])

    def _lose(self, tasks: Iterable[tuple[bytes, int]]) -> None:
        for task, call in tasks:
            if task in self._held and self.call_of(task) == call:
                self._held.pop(task, None)
                self._watched.pop((task, call), None)

    def doubt(self, call: int) -> None:
        self.lease.doubt(call)

    def renewal(self) -> None:
        """Return None: the lease of takers is renewed by a call of its own."""

    def renew_and_return(self, there: object) -> None:
        me, run = incarnation(), self.lease.run_now
        self.lease.requeue_doubtful()
        watched = self._to_ask_about()
        try:
            there = self._renew(watched)
        except QueueDoesNotExistError:
            for task in list(self._watched):
                self._tell_lost(task, Outcome.ABSENT)
            self._to_release.clear()
            raise
        for place, why in there.lost.items():
            self._tell_lost(watched[place], why)
        for worker in self._workers & there.leases.keys():
            if self.lease.is_late(there.leases[worker], there.now) and state(worker) == "alive":
                run(self._operations.renew(worker, True))
        for other, until in self.lease.find_lost(there.leases, there.now):
            if other != me:
                error = _GONE if state(other) == "dead" else _SILENT
                run(self._operations.requeue(other, error, seen=until))
        self._release()

    def _release(self) -> None:
        # A list of pairs would be no copy at one moment: garbage is collected in the midst of it.
        for task, error in self._to_release.copy().items():
            self.lease.run_now(self._operations.release(task, error))
            self._to_release.pop(task, None)

    def _renew(self, watched: Sequence[HeldTask]) -> TakersThere:
        """Renew the lease; tell the broker of the workers if that is due, and ask of tasks."""
        me, run, announcements = incarnation(), self.lease.run_now, self._announcements
        if announcements and not announcements.know_the_time:
            announcements.note(None, run(self._operations.renew(me, self.has_deliveries)).now)
        news = announcements.news(self.lease.share)
        there = run(self._operations.renew(me, self.has_deliveries, news, watched))
        announcements.note(news, there.now)
        return there

    def say_farewell(self) -> None:
        self.lease.reset()
        self.reset()
        self.lease.run_now(self._operations.requeue(incarnation(), _GONE))


def of(engine: Engine, name: str, length: int) -> Takers:
    """Return this process in the queue of tasks of that name, with a lease of so many milliseconds
    or more; does no I/O."""
    return find(Takers, engine, name, TASKS, length)
