"""The page of one task."""

from __future__ import annotations

from ...encoding import reports
from ...encoding.task_values import decode_id
from ...operations.task_results import shown_progress
from ...states import named
from ..actions import read_id
from ..contents import show, signatures
from ..markup import Child, element, link_to
from . import layout, queue
from .layout import NOTHING, Context, duration, number, queue_link


def make(context: Context) -> str:
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
    title = element("a", "Queues", href="./", id="up"), " / ", queue_link((found.name, "tasks"))
    return layout.page(
        context,
        f"Task {id} of {found.name}",
        element("h1", title, " / ", listed, f" / {id}"),
        layout.live(
            "task",
            layout.facts(facts),
            element("p", report.error, class_="error") if report.error else None,
            element("pre", report.traceback) if report.traceback else None,
            signatures((task.data,), is_shown),
            show(task.data, is_shown),
        ),
    )
