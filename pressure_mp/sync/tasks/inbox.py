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
from ...operations.task_results import Heard, TaskEvent

if TYPE_CHECKING:
    from typing_extensions import Self

#: Seconds.
DEFAULT_LEASE = 60.0


class BaseInbox:
    """What both worlds have, that of threads and asyncio."""

    def __init__(self, queue: Any, lease: float, takes: bool) -> None:
        self._queue = queue
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
        """What the broker calls it."""
        return self._asked.inbox

    def _opening(self) -> Operation[None]:
        """Have it at the broker, for its lease from now on."""
        return self._queue._operations.open_inbox(self._asked)  # type: ignore[no-any-return]

    def _watching(self, ids: Iterable[int | str]) -> Operation[bool]:
        keys = [encode_id(id) for id in ids]
        return self._queue._operations.watch(self._asked, keys)  # type: ignore[no-any-return]

    def _taking(self, timeout: float | None) -> Operation[Heard]:
        queue = self._queue
        limit = queue._seconds(timeout)
        return queue._operations.take_notices(  # type: ignore[no-any-return]
            self._asked, self._seen, MOST_ITEMS, limit, queue._here
        )

    def _closing(self) -> Operation[None]:
        return self._queue._operations.close_inbox(self.name)  # type: ignore[no-any-return]

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
                f"the inbox {self.name} of queue {self._queue.name!r} was not asked for longer "
                f"than its lease of {self._asked.lease / 1000:g} s: what it was to hear is lost. "
                "It is there again: let it watch() the tasks that matter"
            )


class TaskInbox(BaseInbox):
    """Where a client hears of many tasks: :meth:`pressure_mp.TaskQueue.inbox` makes one.

    One thread takes from it; others may put with it meanwhile. It is for this process alone: it
    does not go along when it is pickled.
    """

    def watch(self, ids: Iterable[int | str]) -> None:
        """Hear of these tasks too: at once of those that are taken, have ended, or are not there.

        Never waits; up to 1,000 are in each round trip. Raises what :meth:`take` does, but for
        InboxLost: it is opened again then, and the next take raises that.
        """
        if self._queue._run(self._watching(ids)):
            self._was_gone = True

    def take(self, timeout: float | None = None) -> list[TaskEvent]:
        """What it has heard since the last time, in that order: up to 1,000 events.

        What was returned is not told again; but where a call is interrupted, the next one returns
        what that would have. A result that is kept for this inbox alone goes at the next call.

        Blocks until there is one: without limit, or at most ``timeout`` seconds; then there are
        none. Raises InboxLost when nobody asked for longer than the lease, QueueDoesNotExistError,
        BrokerUnavailable.
        """
        self._say_whether_it_was_gone()
        return self._hear(self._queue._run(self._taking(timeout)))

    def close(self) -> None:
        """It is gone, and so are the results that were kept for it alone. Never waits."""
        self._queue._run(self._closing())

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
        raise ArgumentTypeError("an inbox is for one process: make another there")


def late(queue: str, left: int, number: int, limit: float | None) -> ResultTimeout:
    """The error when the time is up that some of so many tasks had to end."""
    return ResultTimeout(
        f"{left} of {number} tasks of queue {queue!r} have not ended after {limit or 0:g} s: ask "
        "for them again, or with more time"
    )
