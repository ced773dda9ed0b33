"""Results of the tasks of a queue, and the inboxes whose clients are told of tasks."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass

from ..contract.items import MOST_BYTES
from ..contract.task_records import Record
from ..contract.task_results import (
    ABSENT,
    NO_RESULT,
    PROGRESS,
    TAKEN,
    WITH_INBOX,
    Notice,
    OpenInbox,
    Result,
)
from .contents import Contents
from .kinds import SortedSet
from .unique_keys import KEY, Holder, Holders


@dataclass
class Kept:
    """The result of a task. With an ``inbox`` it is kept only for that inbox, whose notice has that
    number."""

    outcome: str
    inbox: str
    number: int
    end: int  # 0 for none
    result: Result = NO_RESULT


@dataclass
class Inbox:
    """The number of the last notice, and of the last one that the client has seen; and when the
    inbox ends."""

    lease: int
    takes: bool
    number: int
    seen: int
    end: int = 0


class Results:
    """The results and inboxes of one queue of tasks."""

    def __init__(
        self,
        kept: MutableMapping[bytes, Kept],
        inboxes: MutableMapping[str, Inbox],
        notices: MutableMapping[tuple[str, int], Notice],
        ends: SortedSet[tuple[int, str, bytes]],
        contents: Contents,
        holders: MutableMapping[str, Holder],
    ) -> None:
        self.kept = kept
        self.inboxes = inboxes
        self.contents = contents
        #: The notices that the clients have not yet seen, by inbox and number.
        self._notices = notices
        #: The time at which each inbox ends, each result by the id of its task, and each unique key
        #: that no task holds.
        self._ends = ends
        self.unique = Holders(holders, ends)

    def sweep(self, now: int) -> None:
        """Remove the results, inboxes and unique keys whose time is over."""
        for end, name, id in self._ends.behind():
            if end > now:
                break
            if id == KEY and name:
                self.unique.forget(name)
            elif name:
                self.close(name)
            else:
                self.forget(id)

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
                self.kept[id] = Kept(outcome, inboxes[0], number, 0)
        elif record.result_ttl:
            end = now + record.result_ttl
            self.kept[id] = Kept(outcome, "", 0, end)
            self._ends.add((end, "", id))

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
        if kept is not None and kept.end:
            self._ends.remove((kept.end, "", id))
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
        inbox = self.inboxes.setdefault(name, Inbox(lease, takes, now * 1000, now * 1000))
        inbox.lease, inbox.takes = lease, takes
        self.renew(name, now)

    def renew(self, name: str, now: int) -> bool:
        """Renew the lease of an inbox, and return whether the inbox exists."""
        inbox = self.inboxes.get(name)
        if inbox is None:
            return False
        if inbox.end:
            self._ends.remove((inbox.end, name, b""))
        inbox.end = now + inbox.lease
        self._ends.add((inbox.end, name, b""))
        return True

    def close(self, name: str) -> None:
        """Remove an inbox, and the results that were kept for it."""
        inbox = self.inboxes.get(name)
        if inbox is not None:
            self.have_seen(name, inbox.number)
            self._ends.remove((inbox.end, name, b""))
            del self.inboxes[name]

    def tell(self, name: str, id: bytes, event: str, record: Record | None = None) -> int:
        """Tell an inbox of a task. Returns the number of the notice, 0 if the inbox does not exist
        or is not told of such events."""
        inbox = self.inboxes.get(name)
        if inbox is None or (event in (TAKEN, PROGRESS) and not inbox.takes):
            return 0
        inbox.number += 1
        about = (record.deliveries, record.report) if record is not None else ()
        self._notices[name, inbox.number] = Notice(inbox.number, id, event, *about)
        return inbox.number

    def have_seen(self, name: str, seen: int) -> None:
        """Remove the notices of an inbox up to that number: its client has seen them."""
        inbox = self.inboxes[name]
        while inbox.seen < min(seen, inbox.number):
            inbox.seen += 1
            id = self._notices.pop((name, inbox.seen)).id
            kept = self.kept.get(id)
            if kept is not None and kept.inbox == name and kept.number <= seen:
                self.forget(id)

    def next_notices(self, name: str, limit: int) -> list[Notice]:
        """List the next notices of an inbox, with the results that are kept."""
        found: list[Notice] = []
        room = MOST_BYTES
        inbox = self.inboxes[name]
        for number in range(inbox.seen + 1, min(inbox.seen + limit, inbox.number) + 1):
            notice = self._notices[name, number]
            if notice.event not in (TAKEN, PROGRESS, ABSENT):
                notice = notice._replace(result=self.result_of(notice.id))
            room -= len(notice.result.data) if notice.result else 0
            if room < 0 and found:
                break
            found.append(notice)
        return found
