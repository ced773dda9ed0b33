"""Change queues, as forms ask for it."""

from __future__ import annotations

from collections.abc import Callable

from ..administration import repair
from ..administration.broker import Named
from ..encoding.task_values import check_tube
from ..exceptions import ArgumentError, TaskNotFound
from .markup import link_to
from .pages import queue as queue_page
from .pages.layout import Context, mark_of

#: Seconds to wait for a client of another implementation that is at work.
_PATIENCE = 5.0


def do(context: Context) -> str:
    """Do the change of the form in ``context.query``; return the address of the next page.

    Raises ArgumentError for a change that is not possible, and the broker's errors.
    """
    asked = context.query
    queue = queue_page.find(context)
    does = _ACTIONS.get(asked.get("do", ""))
    if does is None:
        raise ArgumentError("the form does not say what to do")
    number = does(queue, asked.get("id", ""))
    if asked["do"] == "remove":
        return "./"
    page = "tasks" if queue.has_tasks and asked.get("back") == "tasks" else "queue"
    return link_to(page, name=queue.name, kind=queue.discipline, done=asked["do"], n=number)


def _requeue(queue: Named, id: str) -> int:
    if queue.has_tasks and not id:
        return queue.run(queue.tasks.kick_many(None, 0, None))
    return repair.requeue_each(queue, _chosen(queue, id))


def _chosen(queue: Named, id: str) -> list[bytes]:
    """Return the items that were set aside, or the buried tasks; or the chosen one."""
    if queue.has_tasks:
        return [read_id(id)] if id else [task.id for task in repair.buried(queue)]
    items = repair.rejected(queue)
    if not id:
        return items
    chosen = [item for item in items if mark_of(item) == id][:1]
    if not chosen:
        raise ArgumentError("that item is no longer set aside")
    return chosen


def read_id(text: str) -> bytes:
    """Read the id of a task in an address or a form. Raises TaskNotFound."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise TaskNotFound("that is not the id of a task") from None


_ACTIONS: dict[str, Callable[[Named, str], int | None]] = {
    "requeue": _requeue,
    "drop": lambda queue, id: repair.drop_each(queue, _chosen(queue, id)),
    "pause": lambda queue, id: queue.run(queue.tasks.pause(check_tube(id or None), True)),
    "resume": lambda queue, id: queue.run(queue.tasks.pause(check_tube(id or None), False)),
    "empty": lambda queue, id: repair.empty(queue, _PATIENCE),
    "shut_down": lambda queue, id: repair.shut_down(queue, _PATIENCE),
    "remove": lambda queue, id: repair.remove(queue, _PATIENCE),
}
