"""The page of the tasks of one queue."""

from __future__ import annotations

from ...administration.broker import Named
from ...encoding import reports
from ...encoding.task_values import decode_id
from ...operations.task_queue import DecodedTask
from ...operations.task_stats import Counts
from ...states import BURIED, NAMES, named
from ..contents import show, signatures
from ..markup import Child, Markup, element, link_to
from . import layout, queue
from .layout import NOTHING, Context, action, duration, number, queue_link

#: The most tasks on one page, and how many may be before the last page: all of these are read.
_MOST, _FURTHEST = 50, 950
_HEADS = ["Task", "State", "For", "Taken", "Tube", "Last error", "Data"]


def make(context: Context) -> str:
    context.query["kind"] = "tasks"
    found = queue.find(context)
    key = found.name, found.discipline
    stats = found.run(found.tasks.stats())
    asked = context.query.get("state", "")
    state = str(named(asked)) if asked in [str(one) for one in NAMES] else ""
    there = stats.counts[named(state)] if state else sum(stats.counts.values())
    start = context.number("start", 0, _FURTHEST)
    tasks = found.run(found.tasks.list(state or "".join(NAMES), "", start + _MOST))[start:]
    heads = [*_HEADS, "Actions"] if context.settings.allow_actions else _HEADS
    rows = [_row(context, found, task, stats.now, heads) for task in tasks]
    query = {"name": found.name, "state": state}
    turn = layout.turn("tasks", query, start, _MOST, min(there, _FURTHEST + _MOST))
    title = element("a", "Queues", href="./", id="up"), " / ", queue_link(key), " / tasks"
    return layout.page(
        context,
        f"Tasks of {found.name}",
        element("h1", title),
        queue.told(context),
        layout.live(
            "tasks",
            _states(found, stats.counts, state),
            signatures((task.data for task in tasks), context.settings.show_content),
            layout.table(heads, rows, "There is no such task.", class_="tasks"),
            turn,
        ),
    )


def _states(found: Named, counts: Counts, chosen: str) -> Markup:
    choices = [("", "all", sum(counts.values()))]
    choices += [(str(one), one.word, counts[one]) for one in NAMES]
    return element(
        "nav",
        [
            element(
                "a",
                f"{word} {number(of)}",
                href=link_to("tasks", name=found.name, state=letter),
                aria_current="page" if letter == chosen else None,
            )
            for letter, word, of in choices
        ],
        aria_label="States",
        class_="states",
    )


def _row(context: Context, found: Named, task: DecodedTask, now: float, heads: list[str]) -> Markup:
    record = task.record
    id = str(decode_id(task.id))
    cells: list[Child] = [
        element("a", id, href=link_to("task", name=found.name, id=task.id.hex())),
        named(record.state).word,
        duration(now - record.since / 1000),
        number(record.deliveries),
        record.tube or NOTHING,
        element("span", reports.read(record.report).error or NOTHING, class_="error"),
        show(task.data, context.settings.show_content),
    ]
    if context.settings.allow_actions:
        key = found.name, found.discipline
        is_buried = record.state == BURIED
        hexed = task.id.hex()
        cells.append(
            [
                action(context, key, "requeue", "Make ready", id=hexed, back="tasks")
                if is_buried
                else None,
                action(context, key, "drop", "Remove", "It is gone for good.", hexed, "tasks"),
            ]
        )
    return layout.row(heads, cells, "buried" if record.state == BURIED else None)
