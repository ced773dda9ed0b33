"""The effects of a request on a queue of tasks and on the callers that wait there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ..contract.brokers import QueueSummary, of_tasks
from ..contract.items import Put
from ..contract.queues import Dismiss, Enlist, GetDiscipline, GetUsers
from ..contract.replies import NoNotice, NoSpace, NoTask, Outcome, Unprocessed
from ..contract.requests import Request
from ..contract.task_administration import TruncateTasks
from ..contract.task_results import TakeNotices
from ..contract.tasks import AwaitTask, DeleteTasks, PutTasks, RequeueTasks, TakeTasks
from .dispatch import for_places, for_tasks
from .life import Life, Living, TaskPlace
from .line import Caller
from .task_line import TaskLine

#: The requests before which transitions that are due are not made.
_AT_REST = {GetDiscipline, Enlist, GetUsers, Dismiss, DeleteTasks, TruncateTasks, RequeueTasks}

#: The requests that can wait.
Wish = PutTasks | TakeTasks | AwaitTask | TakeNotices
_WISHES = (PutTasks, TakeTasks, AwaitTask, TakeNotices)
_NOT_SERVED = (NoSpace, NoTask, Unprocessed, NoNotice)
#: As what a caller is in line that waits for space.
_TO_PUT = Put(())
#: How many tasks are looked at for a caller. The request of a caller that is woken wakes others.
_SOME = 1000


def do(place: TaskPlace, request: Request, caller: Caller) -> Any:
    """Do a request, and wake the callers that can be served because of it."""
    kind = type(request)
    if kind in for_places:
        return for_places[kind](place, request, caller)
    begin(place, is_at_rest=kind in _AT_REST)
    return do_now(place, request, caller)


def begin(place: TaskPlace, is_at_rest: bool = False) -> None:
    """Note the time, and make the transitions that are due unless the queue ``is_at_rest``."""
    life = place.state
    if life is not None:
        life.now = place.clock()
        if not is_at_rest:
            life.sweep()


def do_now(place: TaskPlace, request: Request, caller: Caller) -> Any:
    """Do a request to a queue that exists, at the time that was noted."""
    life = place.state
    if life is None:
        if isinstance(request, _WISHES):
            place.line.leave(caller)
        return Outcome.MISSING
    reply = for_tasks[type(request)](life, request, caller)
    if life.ready.is_limited and isinstance(reply, NoTask):
        assert isinstance(request, TakeTasks)
        if request.waits:
            reply = _leave_watch(place.line, life, reply, caller)
    if isinstance(request, _WISHES):
        _keep_place(place.line, life, request, reply, caller)
    if life.is_deleted:
        place.delete()
    _wake_ready(place.line, place.state)
    return reply


def leave(place: TaskPlace, caller: Caller) -> None:
    """Give up the caller's place, and wake the next caller for what this one was woken for."""
    place.line.leave(caller)
    if place.state is not None:
        place.state.ends.forget(caller)
    _wake_ready(place.line, place.state)


def summarize(place: TaskPlace, name: str) -> QueueSummary | None:
    """Make the summary with which the queue is listed; None when it does not exist."""
    life = place.state
    if life is None:
        return None
    life.now = place.clock()
    task = next(life.ready.line(""), None)
    age = None if task is None else (life.now - task.record.created) / 1000
    ways = {way: number for way, number in life.ways.all().items() if " " not in way}
    workers = sum(
        len(texts)
        for owner, texts in life.workers.items()
        if life.presence.get(owner, 0) >= life.now
    )
    paused = life.ready.paused()
    bound = life.settings.maxsize, len(life.putters)
    return of_tasks(name, life.closed, paused, ways, len(place.line), age, workers, *bound)


def _leave_watch(line: TaskLine, life: Life, reply: NoTask, caller: Caller) -> NoTask:
    """Leave it to another caller to call when a limit admits a task, if one will: it has the next
    one woken."""
    due = life.next_due_at()
    others = [at for other, _, at in line.takers() if other != caller and at is not None]
    if due is None or not any(life.now <= at <= due for at in others):
        return reply
    return reply._replace(due=None)


def _keep_place(line: TaskLine, life: Life, wish: Wish, reply: Any, caller: Caller) -> None:
    """Give a caller that waits and was not served a place, or keep it."""
    stays = wish.waits and isinstance(reply, _NOT_SERVED)
    if stays and isinstance(wish, TakeTasks):
        due = life.next_due_at() if reply.due is not None else None
        line.keep_place(caller, wish.tube, due)
        return
    if stays and isinstance(wish, PutTasks):
        life.putters.keep_place(caller, _TO_PUT)
        return
    line.leave(caller)
    if stays and isinstance(wish, AwaitTask):
        line.await_end(caller)
    elif stays and isinstance(wish, TakeNotices):
        line.read(caller, wish.inbox, life.results.inboxes[wish.inbox].number)


def _wake_ready(line: TaskLine, life: Life | None) -> None:
    """Wake the callers that can be served: those whose task has ended, or whose inbox has a notice
    or is gone; the first in line for each ready task, and when a task becomes ready before any of
    them calls again; the first in line for space; after a shutdown the callers without a ready
    task, and all that wait for space; all callers when the queue is gone."""
    if line.is_empty:
        return
    for caller, name, number in line.readers():
        inbox = None if life is None else life.results.inboxes.get(name)
        if inbox is None or inbox.number > number:
            caller.wake()
    for caller in line.awaiting():
        if life is None or life.ends.has_outcome(caller):
            caller.wake()
    for caller in _served(line, life):
        caller.wake()
    for caller, _ in line.putters.waiting():
        if life is None or life.closed or life.space(1):
            caller.wake()
        if life is not None and not life.closed:
            break  # only the first in line can be served


def _served(line: TaskLine, life: Life | None) -> Iterator[Caller]:
    """Iterate over the callers that wait for a task and can be served."""
    takers = line.takers()
    if life is None:
        yield from (caller for caller, *_ in takers)
        return
    due = life.next_due_at()
    if due is not None and all(at is None or due < at for *_, at in takers):
        yield from (caller for caller, *_ in itertools.islice(takers, 1))
    lines: dict[str, Iterator[Living]] = {}
    given: set[bytes] = set()
    shares = life.ready.shares(life.now)
    for caller, tube, _ in takers:
        rest = lines.setdefault(tube, life.ready.next(tube, life.now))
        others = (task for task in itertools.islice(rest, _SOME) if task.id not in given)
        task = next((task for task in others if shares.give(task.record.tube)), None)
        if task is not None:
            given.add(task.id)
            yield caller
        elif not given and life.ready.is_cut(tube, life.now):
            given.add(b"")  # this caller looks for more
            yield caller
        elif life.closed and not life.number_ready(tube):
            yield caller
        elif not tube and not life.closed:
            break  # nothing is ready
