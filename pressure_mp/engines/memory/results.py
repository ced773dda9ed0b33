"""Results of the tasks of a queue, and the inboxes whose clients are told of tasks."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..contract.items import MOST_BYTES
from ..contract.task_records import Record
from ..contract.task_results import ABSENT, NO_RESULT, TAKEN, WITH_INBOX, Notice, OpenInbox, Result
from .contents import Contents


@dataclass
class Kept:
    """The result of a task. With an ``inbox`` it is kept only for that inbox, whose notice has that
    number."""

    outcome: str
    inbox: str
    number: int
    result: Result = NO_RESULT


@dataclass
class Inbox:
    """The notices that the client has not yet seen, and the number of the last one."""

    lease: int
    takes: bool
    number: int = 0
    notices: list[Notice] = field(default_factory=list)


class Results:
    """The results and inboxes of one queue of tasks."""

    def __init__(self) -> None:
        self.kept: dict[bytes, Kept] = {}
        self.inboxes: dict[str, Inbox] = {}
        self.contents = Contents()
        #: The time at which each result or inbox ends; and the same in order of time, with ends
        #: that were postponed since.
        self._ends: dict[bytes | str, int] = {}
        self._order: list[tuple[int, int, bytes | str]] = []
        self._count = 0

    def sweep(self, now: int) -> None:
        """Remove the results and inboxes whose time is over."""
        while self._order and self._order[0][0] <= now:
            end, _, key = heapq.heappop(self._order)
            if self._ends.get(key) != end:
                continue
            if isinstance(key, bytes):
                self.forget(key)
            else:
                self.close(key)

    def _end_at(self, key: bytes | str, end: int) -> None:
        self._ends[key] = end
        self._count += 1
        heapq.heappush(self._order, (end, self._count, key))

    # Results

    def conclude(
        self, id: bytes, inboxes: Sequence[str], record: Record, outcome: str, now: int
    ) -> None:
        """Note that a task has ended, or is buried: keep that, if its result is to be kept, and
        tell its inboxes."""
        self.forget(id)
        numbers = {inbox: self.tell(inbox, id, outcome, record) for inbox in inboxes}
        if record.result_ttl == WITH_INBOX:
            number = numbers[inboxes[0]]
            if number:
                self.kept[id] = Kept(outcome, inboxes[0], number)
        elif record.result_ttl:
            self.kept[id] = Kept(outcome, "", 0)
            self._end_at(id, now + record.result_ttl)

    def say(self, id: bytes, result: Result, has_ended: bool) -> None:
        """Set the result of a task that has ended just now; for a task that has not ended it is
        ignored."""
        kept = self.kept.get(id) if has_ended else None
        if kept is not None:
            kept.result = result
            if result.token:
                self.contents.queue(result.token)
        elif result.token:
            self.contents.end(result.token)

    def forget(self, id: bytes) -> None:
        kept = self.kept.pop(id, None)
        self._ends.pop(id, None)
        if kept is not None and kept.result.token:
            self.contents.end(kept.result.token)

    def result_of(self, id: bytes) -> Result | None:
        kept = self.kept.get(id)
        return kept.result if kept is not None else None

    # Inboxes

    def open(self, request: OpenInbox, now: int) -> None:
        name, lease, takes = request
        # An inbox that was removed does not count from 1 again: its client may name notices that it
        # saw before.
        inbox = self.inboxes.setdefault(name, Inbox(lease, takes, now * 1000))
        inbox.lease, inbox.takes = lease, takes
        self.renew(name, now)

    def renew(self, name: str, now: int) -> bool:
        """Renew the lease of an inbox, and return whether the inbox exists."""
        inbox = self.inboxes.get(name)
        if inbox is not None:
            self._end_at(name, now + inbox.lease)
        return inbox is not None

    def close(self, name: str) -> None:
        """Remove an inbox, and the results that were kept for it."""
        self.inboxes.pop(name, None)
        self._ends.pop(name, None)
        for id in [id for id, kept in self.kept.items() if kept.inbox == name]:
            self.forget(id)

    def tell(self, name: str, id: bytes, event: str, record: Record | None = None) -> int:
        """Tell an inbox of a task. Returns the number of the notice, 0 if the inbox does not exist
        or is not told of such events."""
        inbox = self.inboxes.get(name)
        if inbox is None or (event == TAKEN and not inbox.takes):
            return 0
        inbox.number += 1
        about = (record.deliveries, record.error) if record is not None else ()
        inbox.notices.append(Notice(inbox.number, id, event, *about))
        return inbox.number

    def have_seen(self, name: str, seen: int) -> None:
        """Remove the notices of an inbox up to that number: its client has seen them."""
        notices = self.inboxes[name].notices
        while notices and notices[0].number <= seen:
            id = notices.pop(0).id
            kept = self.kept.get(id)
            if kept is not None and kept.inbox == name and kept.number <= seen:
                self.forget(id)

    def next_notices(self, name: str, limit: int) -> list[Notice]:
        """List the next notices of an inbox, with the results that are kept."""
        found: list[Notice] = []
        room = MOST_BYTES
        for notice in self.inboxes[name].notices[:limit]:
            if notice.event not in (TAKEN, ABSENT):
                notice = notice._replace(result=self.result_of(notice.id))
            room -= len(notice.result.data) if notice.result else 0
            if room < 0 and found:
                break
            found.append(notice)
        return found
