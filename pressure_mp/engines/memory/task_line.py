"""The callers that wait at a queue of tasks: for a task, first come, first served; for the end of a
task; or for a notice."""

from __future__ import annotations

from .life import Life
from .line import Caller


class TaskLine:
    """The waiting callers of one queue of tasks."""

    def __init__(self) -> None:
        #: The line of callers that wait for a task, each with the tube, empty for any.
        self._takers: dict[Caller, str] = {}
        #: The times at which some of them call again by themselves, as a task becomes ready then.
        self._retries_at: dict[Caller, int] = {}
        self._awaiting: set[Caller] = set()
        #: The callers that wait for notices, each with the inbox and its last number.
        self._readers: dict[Caller, tuple[str, int]] = {}

    def __len__(self) -> int:
        """Count the callers that wait for a task."""
        return len(self._takers)

    def keep_place(self, caller: Caller, tube: str, retries_at: int | None) -> None:
        """Give a caller a place in line for a task, or keep it; it calls again at
        ``retries_at``."""
        caller.will_wait()
        self._takers.setdefault(caller, tube)
        self._retries_at.pop(caller, None)
        if retries_at is not None:
            self._retries_at[caller] = retries_at

    def await_end(self, caller: Caller) -> None:
        """Note that a caller waits for the end of a task."""
        caller.will_wait()
        self._awaiting.add(caller)

    def read(self, caller: Caller, inbox: str, number: int) -> None:
        """Note that a caller waits for a notice with a higher number."""
        caller.will_wait()
        self._readers[caller] = inbox, number

    def leave(self, caller: Caller) -> None:
        self._readers.pop(caller, None)
        self._takers.pop(caller, None)
        self._retries_at.pop(caller, None)
        self._awaiting.discard(caller)

    def wake_ready(self, life: Life | None) -> None:
        """Wake the callers that can be served: those whose task has ended, or whose inbox has a
        notice or is gone; the first in line for each ready task, and when a task becomes ready
        before any of them calls again; after a shutdown the callers without a ready task; all
        callers when the queue is gone."""
        if life is None:
            for caller in (*self._takers, *self._awaiting, *self._readers):
                caller.wake()
            return
        for caller, (name, number) in self._readers.items():
            inbox = life.results.inboxes.get(name)
            if inbox is None or inbox.number > number:
                caller.wake()
        for caller in self._awaiting & life.outcomes.keys():
            caller.wake()
        if self._takers:
            first = self._first(life)
            due = life.next_due_at()
            if due is not None and all(due < at for at in self._retries_at.values()):
                first.append(next(iter(self._takers)))
            for caller in first:
                caller.wake()

    def _first(self, life: Life) -> list[Caller]:
        ready, first = life.ready_tubes, []
        for caller, tube in self._takers.items():
            if life.closed and not life.number_ready(tube):
                first.append(caller)
                continue
            if not ready:
                continue
            if not tube:
                del ready[0]
            elif tube in ready:
                ready.remove(tube)
            else:
                continue
            first.append(caller)
        return first
