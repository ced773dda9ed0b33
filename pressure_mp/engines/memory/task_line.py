"""Who waits for a task, or for what becomes of some. First come, first served."""

from __future__ import annotations

from .life import Life
from .line import Caller


class TaskLine:
    """The callers that wait."""

    def __init__(self) -> None:
        #: Those who want a task, in line, each with the tube; empty for any.
        self._takers: dict[Caller, str] = {}
        #: When some of them look again by themselves, since a task becomes ready then.
        self._retries_at: dict[Caller, int] = {}
        self._watchers: set[Caller] = set()
        #: Those who wait for notices, each with the inbox and the last number in it.
        self._readers: dict[Caller, tuple[str, int]] = {}

    def __len__(self) -> int:
        """How many want a task."""
        return len(self._takers)

    def stand(self, caller: Caller, tube: str, retries_at: int | None) -> None:
        """One waits for a task, and keeps its place in line; it looks again at that time."""
        caller.rest()
        self._takers.setdefault(caller, tube)
        self._retries_at.pop(caller, None)
        if retries_at is not None:
            self._retries_at[caller] = retries_at

    def watch(self, caller: Caller) -> None:
        """One waits for what becomes of a task."""
        caller.rest()
        self._watchers.add(caller)

    def read(self, caller: Caller, inbox: str, number: int) -> None:
        """One waits for a notice, which will have a higher number."""
        caller.rest()
        self._readers[caller] = inbox, number

    def leave(self, caller: Caller) -> None:
        """One waits no longer."""
        self._readers.pop(caller, None)
        self._takers.pop(caller, None)
        self._retries_at.pop(caller, None)
        self._watchers.discard(caller)

    def wake_ready(self, life: Life | None) -> None:
        """Those whose task has come to its end, or whose inbox has a notice or is gone; the first
        in line for each task that is ready, and when one becomes ready before anybody looks again;
        those for whom none is when the queue is shut down; everybody when it is gone."""
        if life is None:
            for caller in (*self._takers, *self._watchers, *self._readers):
                caller.wake()
            return
        for caller, (name, number) in self._readers.items():
            inbox = life.results.inboxes.get(name)
            if inbox is None or inbox.number > number:
                caller.wake()
        for caller in self._watchers & life.outcomes.keys():
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
