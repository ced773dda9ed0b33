"""Requests about results of tasks, and about inboxes, in which clients are told of many tasks. All
times are in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .replies import Done, Lost, Missing, NoNotice

#: The ``result_ttl`` of a task whose result is kept only for the inbox that it was put with: until
#: that inbox has seen it, or is gone.
WITH_INBOX = -1

#: The events of a notice: the task was taken (again, if it was delivered before); its taker told of
#: its progress; neither the task nor a result of it exists. All other events are outcomes of
#: :class:`~.tasks.FinishedTask`.
TAKEN = "taken"
PROGRESS = "progress"
ABSENT = "absent"


class Result(NamedTuple):
    """The result of a task, in bytes that no broker reads; empty when its taker gave none.

    With a ``token`` the bytes are a manifest, whose content was stored under that token.
    """

    data: bytes = b""
    token: str = ""


#: The result of a taker that gives none.
NO_RESULT = Result()


class OpenInbox(NamedTuple):
    """Create an inbox of that name, for ``lease`` from now on; each request of its client that
    names it renews that. An inbox whose lease has ended is removed, with all its notices. Without
    ``takes`` it is told neither that tasks are taken, nor of their progress."""

    inbox: str
    lease: int
    takes: bool = True


class CloseInbox(NamedTuple):
    """Remove an inbox."""

    inbox: str


InboxReply = Done | Missing


class WatchTasks(NamedTuple):
    """Tell an inbox of these tasks too, up to MOST_ITEMS: at once of tasks that are taken, have
    ended, or do not exist, and of the others when that happens. LOST: the inbox is gone."""

    inbox: str
    ids: Sequence[bytes]


WatchTasksReply = Done | Lost | Missing


class Notice(NamedTuple):
    """A notice of a task in an inbox. ``number`` grows with each notice of that inbox, also when
    the inbox was gone and is opened again.

    ``deliveries`` is how often the task was taken, ``report`` the report on it then.
    ``result`` is its result, if that is still kept.
    """

    number: int
    id: bytes
    event: str
    deliveries: int = 0
    report: str = ""
    result: Result | None = None


class TakenNotices(NamedTuple):
    """The notices, in the order in which they came: one or more."""

    notices: list[Notice]


class TakeNotices(NamedTuple):
    """Get the next notices of an inbox, up to ``limit`` and to MOST_BYTES of results.

    The notices up to the number ``seen`` are removed, and with them the results that were kept for
    that inbox. The others stay: a repeated request gets the same ones. LOST: the inbox is gone.
    """

    inbox: str
    seen: int
    limit: int
    waits: bool = True


TakeNoticesReply = TakenNotices | NoNotice | Lost | Missing
