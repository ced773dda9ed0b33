"""Repair a queue of any kind."""

from __future__ import annotations

from collections.abc import Iterable

from ..identity.processes import incarnation, is_lost, state
from ..operations.task_queue import DecodedTask
from ..states import BURIED, READY, VOID
from .broker import Named

#: How many buried tasks one call returns.
_MANY_TASKS = 10_000


def requeue_each(queue: Named, found: Iterable[bytes]) -> int:
    """Put back items that were set aside, or make buried tasks ready, by their ids; return how
    many."""
    if not queue.has_tasks:
        return sum(queue.run(queue.items.requeue_rejected(item)) for item in found)
    return _change_each(queue, "kick", found, str(READY))


def drop_each(queue: Named, found: Iterable[bytes]) -> int:
    """Remove items that were set aside, or tasks by their ids, for good; return how many."""
    if not queue.has_tasks:
        return sum(queue.run(queue.items.drop_rejected(item)) for item in found)
    return _change_each(queue, "kill", found, str(VOID))


def _change_each(queue: Named, operation: str, ids: Iterable[bytes], state: str) -> int:
    number = 0
    for id in ids:
        queue.run(queue.tasks.change(operation, id, state))
        number += 1
    return number


def buried(queue: Named) -> list[DecodedTask]:
    """Return the oldest buried tasks, as many as one call returns."""
    return queue.run(queue.tasks.list(BURIED, "", _MANY_TASKS))


def rejected(queue: Named) -> list[bytes]:
    """Return the items of a queue that were set aside, the oldest first."""
    there = queue.stats().rejected
    return queue.run(queue.items.rejected(there)) if there else []


def return_lost(queue: Named) -> None:
    """Give back now, to the front, the items of lost processes; else this happens when a get
    waits."""
    there = queue.run(queue.items.renew(incarnation(), False, False))
    for owner, until in there.consumers.items():
        if is_lost(state(owner), until, there.now):
            queue.run(queue.items.requeue(owner, until))


def empty(queue: Named, timeout: float | None) -> int:
    """Drop all items of a queue, or all tasks in every state; return how many. Waits at most
    ``timeout`` seconds for a client of another implementation that is at work."""
    if queue.has_tasks:
        return queue.run(queue.tasks.truncate())
    return queue.run(queue.items.purge(True, timeout))


def shut_down(queue: Named, timeout: float | None, immediate: bool = False) -> None:
    """Shut a queue down for all processes, for good; with ``immediate`` its items are dropped.
    ``timeout`` is used as by :func:`empty`."""
    if queue.has_tasks:
        queue.run(queue.tasks.close())
    else:
        queue.run(queue.items.close(True, timeout, once=False, immediate=immediate))


def remove(queue: Named, timeout: float | None) -> None:
    """Remove a queue with its items or tasks. ``timeout`` is used as by :func:`empty`."""
    if queue.has_tasks:
        queue.run(queue.tasks.delete())
    else:
        queue.run(queue.items.delete(True, timeout))
