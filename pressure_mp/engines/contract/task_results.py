"""Requests about what comes of tasks: results, and the inboxes in which clients hear of many tasks.
All times are in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .replies import Done, Lost, Missing, NoNotice

#: The ``result_ttl`` of a task whose result is kept for the inbox that it was put with, and for
#: nobody else: until that inbox has seen it, or is gone.
WITH_INBOX = -1

#: What a notice says: the task was taken (again, if it was delivered before); it is neither there,
#: nor is a result of it; else it is one of the outcomes of :class:`~.tasks.FinishedTask`.
TAKEN = "taken"
ABSENT = "absent"


class Result(NamedTuple):
    """What a taker says came of a task, in bytes that no broker reads; none, when it said nothing.

    With a ``token`` they are a manifest, whose content was stored under that token.
    """

    data: bytes = b""
    token: str = ""


#: Of a taker that says nothing.
NO_RESULT = Result()


class OpenInbox(NamedTuple):
    """Have an inbox of that name, for ``lease`` from now on; each request of its client that names
    it renews that. One that is gone is forgotten, with all that it was to hear. Without ``takes``
    it does not hear that tasks are taken."""

    inbox: str
    lease: int
    takes: bool = True


class CloseInbox(NamedTuple):
    """Its client is done with an inbox: it is gone."""

    inbox: str


InboxReply = Done | Missing


class WatchTasks(NamedTuple):
    """An inbox hears of these tasks too, up to MOST_ITEMS: at once of those that are taken, or have
    ended, or are not there, and of the others when that comes. LOST: the inbox is gone."""

    inbox: str
    ids: Sequence[bytes]


WatchTasksReply = Done | Lost | Missing


class Notice(NamedTuple):
    """What an inbox hears of a task. ``number`` grows with each notice of that inbox, also when it
    was gone and is opened again.

    ``deliveries`` says how often the task was taken, ``error`` is the last error that it was given
    back or buried with. ``result`` is there when one is kept for now.
    """

    number: int
    id: bytes
    event: str
    deliveries: int = 0
    error: str = ""
    result: Result | None = None


class TakenNotices(NamedTuple):
    """The notices, in the order in which they came: one or more."""

    notices: list[Notice]


class TakeNotices(NamedTuple):
    """The next notices of an inbox, up to ``limit`` and to MOST_BYTES of results.

    Those up to the number ``seen`` are removed, and with them the results that were kept for that
    inbox. The others stay: who asks for the same again is told the same. LOST: the inbox is gone.
    """

    inbox: str
    seen: int
    limit: int
    waits: bool = True


TakeNoticesReply = TakenNotices | NoNotice | Lost | Missing
