"""The pages of the tasks of one queue, and of one task."""

from __future__ import annotations

from ...administration.broker import Named
from ...encoding import reports
from ...encoding.task_values import decode_id
from ...operations.task_queue import DecodedTask
from ...operations.task_results import shown_progress
from ...operations.task_stats import Counts
from ...states import BURIED, NAMES, named
from ..actions import read_id
from ..markup import Child, Markup, element, link_to
from . import layout, queue
from .layout import NOTHING, Context, action, duration, number, queue_link, show, signatures

#: The most tasks on one page, and how many may be before the last page: all of these are read.
_MOST, _FURTHEST = 50, 950
_HEADS = ["Task", "State", "For", "Taken", "Tube", "Last error", "Data"]


def make(context: Context) -> str:
    context.query["kind"] = "tasks"
    found = queue.find(context)
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
    return layout.page(
        context,
        f"Tasks of {found.name}",
        layout.heading(queue_link(found.key), "tasks"),
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
    links = [
        element(
            "a",
            f"{word} {number(of)}",
            href=link_to("tasks", name=found.name, state=letter),
            aria_current="page" if letter == chosen else None,
        )
        for letter, word, of in choices
    ]
    return element("nav", links, aria_label="States", class_="states")


def _row(context: Context, found: Named, task: DecodedTask, now: float, heads: list[str]) -> Markup:
    record, hexed = task.record, task.id.hex()
    id = str(decode_id(task.id))
    cells: list[Child] = [
        element("a", id, href=link_to("task", name=found.name, id=hexed)),
        named(record.state).word,
        duration(now - record.since / 1000),
        number(record.deliveries),
        record.tube or NOTHING,
        element("span", reports.read(record.report).error or NOTHING, class_="error"),
        show(task.data, context.settings.show_content),
    ]
    is_buried = record.state == BURIED
    if context.settings.allow_actions:
        ready = action(context, found, "requeue", "Make ready", id=hexed, back="tasks")
        gone = action(context, found, "drop", "Remove", "It is gone for good.", hexed, "tasks")
        cells.append([ready if is_buried else None, gone])
    return layout.row(heads, cells, "buried" if is_buried else None)


def make_one(context: Context) -> str:
    context.query["kind"] = "tasks"
    found = queue.find(context)
    task = found.run(found.tasks.peek(read_id(context.query.get("id", ""))))
    now = found.run(found.tasks.stats()).now
    record, is_shown = task.record, context.settings.show_content
    id = str(decode_id(task.id))
    report = reports.read(record.report)
    progress = shown_progress(record)
    facts: list[tuple[str, Child]] = [
        ("State", f"{named(record.state).word} for {duration(now - record.since / 1000)}"),
        ("Put", f"{duration(now - record.created / 1000)} ago"),
        ("Taken", number(record.deliveries)),
        ("Tube", record.tube or NOTHING),
        ("Key", record.key or NOTHING),
        ("Unique", record.unique or NOTHING),
        ("Owner", record.owner or NOTHING),
        ("Progress", NOTHING if progress is None else show(progress, is_shown)),
    ]
    listed = element("a", "tasks", href=link_to("tasks", name=found.name))
    return layout.page(
        context,
        f"Task {id} of {found.name}",
        layout.heading(queue_link(found.key), listed, id),
        layout.live(
            "task",
            layout.facts(facts),
            element("p", report.error, class_="error") if report.error else None,
            element("pre", report.traceback) if report.traceback else None,
            signatures((task.data,), is_shown),
            show(task.data, is_shown),
        ),
    )
