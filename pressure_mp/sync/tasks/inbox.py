"""An inbox: where a client hears of many tasks, over one connection."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...effects import Operation
from ...encoding.task_values import encode_id, milliseconds
from ...engines.contract.items import MOST_ITEMS
from ...engines.contract.task_results import OpenInbox
from ...exceptions import ArgumentTypeError, InboxLost, PressureError, ResultTimeout
from ...handles.tasks import TaskAttachment
from ...operations.task_results import Heard, TaskEvent
from ..handles import Blocking, attachment_of

if TYPE_CHECKING:
    from typing_extensions import Self

#: Seconds.
DEFAULT_LEASE = 60.0


class BaseInbox:
    """The part of an inbox that threads and asyncio share."""

    def __init__(self, queue: TaskAttachment, lease: float, takes: bool) -> None:
        self._at = queue
        #: What the broker is asked to have.
        self._asked = OpenInbox(
            os.urandom(8).hex(), milliseconds("lease", lease, least=1.0), bool(takes)
        )
        #: The number of the last notice that was returned.
        self._seen = 0
        #: Whether it was gone, which its client was not yet told.
        self._was_gone = False

    @property
    def name(self) -> str:
        """The name of the inbox at the broker."""
        return self._asked.inbox

    def _watching(self, ids: Iterable[int | str]) -> Operation[bool]:
        return self._at.operations.watch(self._asked, [encode_id(id) for id in ids])

    def _taking(self, timeout: float | None) -> Operation[Heard]:
        queue = self._at
        limit = queue.seconds(timeout)
        return queue.operations.take_notices(self._asked, self._seen, MOST_ITEMS, limit, queue.here)

    def _closing(self) -> Operation[None]:
        return self._at.operations.close_inbox(self.name)

    def _note_whether_gone(self, was_gone: bool) -> None:
        self._was_gone = self._was_gone or was_gone

    def _hear(self, heard: Heard) -> list[TaskEvent]:
        self._seen = heard.number
        if heard.is_lost:
            self._was_gone = True
            self._say_whether_it_was_gone()
        return heard.events

    def _say_whether_it_was_gone(self) -> None:
        if self._was_gone:
            self._was_gone = False
            raise InboxLost(
                f"the events of inbox {self.name} of queue {self._at.name!r} are lost: it was not "
                f"asked for longer than its lease of {self._asked.lease / 1000:g} s, or the broker "
                "lost its data. The inbox is there again: watch() the tasks that matter"
            )


def opening(inbox: BaseInbox) -> Operation[None]:
    """Open an inbox at the broker, for its lease from now on."""
    return inbox._at.operations.open_inbox(inbox._asked)


class TaskInbox(BaseInbox, Blocking):
    """A mailbox at the broker for news of many tasks; see :meth:`pressure_mp.TaskQueue.inbox`.

    The news (events) are that a task was taken, that its handler told of its progress, and that it
    has ended. One thread may call :meth:`take`; other threads may put tasks with this inbox
    meanwhile. An inbox belongs to its process: pickling it raises ArgumentTypeError.
    """

    def __init__(self, queue: Any, lease: float, takes: bool) -> None:
        super().__init__(attachment_of(queue), lease, takes)

    def watch(self, ids: Iterable[int | str]) -> None:
        """Get events of these tasks too.

        For tasks that are already taken, have ended, or do not exist, there is an event at once.
        Never waits; each round trip has up to 1,000 ids. Raises QueueDoesNotExistError,
        BrokerUnavailable. If the inbox was lost (see :meth:`take`), this opens it again, and the
        next take raises InboxLost.
        """
        return self._then(self._run(self._watching(ids)), self._note_whether_gone)

    def take(self, timeout: float | None = None) -> list[TaskEvent]:
        """Take the events since the last call, up to 1,000, in the order in which they occurred.

        An event is returned once; if a call is interrupted, the next one returns its events. A
        result that is kept for this inbox alone is removed from the broker at the next call.

        Blocks until there is an event: without limit, or at most ``timeout`` seconds; then it
        returns an empty list. Raises InboxLost when the inbox was not used for longer than its
        lease: its events are lost, and it is open again. Raises QueueDoesNotExistError,
        BrokerUnavailable.
        """
        self._say_whether_it_was_gone()
        return self._then(self._run(self._taking(timeout)), self._hear)

    def close(self) -> None:
        """Remove the inbox, and the results that were kept for it alone. Never waits."""
        return self._run(self._closing())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except PressureError:
            if error is None:
                raise  # else its lease ends it

    def __reduce__(self) -> Any:
        raise ArgumentTypeError(
            "an inbox is for one process: create another one in the other process"
        )


def late(queue: str, left: int, number: int, limit: float | None) -> ResultTimeout:
    """The error when the time is up that some of so many tasks had to end."""
    return ResultTimeout(
        f"{left} of {number} tasks of queue {queue!r} have not ended after {limit or 0:g} s: ask "
        "for them again, or with more time"
    )
