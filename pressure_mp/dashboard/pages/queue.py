"""The page of one queue."""

from __future__ import annotations

import time
from typing import Any

from ...administration.broker import KINDS, Named
from ...administration.clients import diagnose, known_clients
from ...administration.rates import QueueRates
from ...exceptions import QueueDoesNotExistError
from ...operations.diagnosis import Diagnosis
from ...operations.diagnosis_sides import Side
from ...operations.phrases import standing
from ...operations.task_diagnosis import TaskDiagnosis
from ...operations.task_stats import queued
from ...states import NAMES
from ..charts import Curve, bar, chart, rates
from ..history import Point
from ..markup import Child, Markup, element, link_to
from . import layout
from .layout import (
    ALIVE,
    NOTHING,
    Context,
    action,
    duration,
    mark_of,
    number,
    rate,
    show,
    signatures,
)

#: The most items that are shown: of the next items, and of the items that were set aside.
_MOST_ITEMS = 10
MOST_REJECTED = 50
#: The most tubes that are shown.
_MOST_TUBES = 100
#: The most tasks of a worker that are named.
_MOST_AT = 5
_DONE = {
    "empty": "{} dropped.",
    "requeue": "{} put back.",
    "drop": "{} removed.",
    "pause": "It is paused.",
    "resume": "It is resumed.",
    "shut_down": "The queue is shut down.",
}


def make(context: Context) -> str:
    queue = find(context)
    found = diagnose(queue)
    latest = context.monitor.view().queues.get(queue.key)
    name = queue.name or "(no name)"
    title = layout.heading([name, " ", element("small", queue.discipline)])
    body: list[Child] = [title, told(context)]
    where = link_to("tasks", name=queue.name)
    tasks = element("p", element("a", "Its tasks, and their errors", href=where))
    sentence = element("p", layout.with_commands(found.sentence), class_="sentence")
    too_slow = found.too_slow if isinstance(found, TaskDiagnosis) else ""
    late = element("p", too_slow, class_="alarm") if too_slow else None
    body.append(layout.live("why", sentence, late, tasks if queue.has_tasks else None))
    body.append(layout.live("charts", _charts(context, queue, latest)))
    body.append(layout.live("numbers", _numbers(queue, latest)))
    body.append(layout.live("clients", _clients(found)))
    if queue.has_tasks:
        body.append(layout.live("tubes", _tubes(context, queue)))
    else:
        body.append(layout.live("items", _items(context, queue), _rejected(context, queue)))
    body.append(_actions(context, queue, found))
    return layout.page(context, queue.name, body)


def find(context: Context) -> Named:
    """Find the queue of the query. Raises QueueDoesNotExistError."""
    name, kind = context.query.get("name", ""), context.query.get("kind", "")
    try:
        found = context.broker.find(name)
    except QueueDoesNotExistError:
        raise QueueDoesNotExistError(f"Queue {name!r} does not exist.") from None
    if kind in ("", found.discipline):
        return found
    if kind in KINDS:
        named = context.broker.named(name, kind)  # items and tasks may share a name
        if named.run(named.operations.exists()):
            return named
    raise QueueDoesNotExistError(f"There is no queue {name!r} of the kind {kind!r}.")


def told(context: Context) -> Child:
    """Show the result of the last action."""
    text = _DONE.get(context.query.get("done", ""))
    if text is None:
        return None
    done = text.format(number(context.number("n", 0, 10**9)))
    return element("p", done, class_="done", role="status")


def _charts(context: Context, queue: Named, latest: QueueRates | None) -> Child:
    points = context.monitor.history.points(queue.key)
    if latest is not None:
        one = latest.queue
        counted = one.length, one.maxsize, one.produced, one.consumed
        seen = time.time() - (time.monotonic() - latest.seen)
        points.append(Point(max(seen, points[-1].time if points else 0), *counted))
    if len(points) < 2 or points[0].time == points[-1].time:
        return element("p", "Its history begins now.", class_="note")
    depths = [point.depth for point in points]
    least, most, now = min(depths), max(depths), depths[-1]
    what = "ready" if queue.has_tasks else "queued"
    text = f"{number(now)} {'was' if now == 1 else 'were'} {what} all this time."
    if least != most:
        are = "is" if now == 1 else "are"
        text = f"{number(now)} {are} {what} now; before, from {number(least)} to {number(most)}."
    depth = Curve("depth", [(point.time, point.depth) for point in points])
    come, go = Curve("in", rates(points, "produced")), Curve("out", rates(points, "consumed"))
    fastest = [max((value for _, value in line.points), default=0.0) for line in (come, go)]
    speed = f"At most {rate(fastest[0])} a second came and {rate(fastest[1])} went."
    of_in, of_out = element("span", "In", class_="in"), element("span", "out", class_="out")
    sections = [
        ("Depth", chart([depth], text, points[-1].bound), text),
        ([of_in, " and ", of_out, " a second"], chart([come, go], speed), speed),
    ]
    return element(
        "div",
        [
            element("section", element("h2", head), picture, element("p", words))
            for head, picture, words in sections
        ],
        class_="charts",
    )


def _bound(maxsize: int, length: int) -> Child:
    return [number(maxsize), bar(length, maxsize)] if maxsize else "none"


def _numbers(queue: Named, latest: QueueRates | None) -> Markup:
    speeds: list[tuple[str, Child]] = []
    if latest is not None:
        speeds = [("in a second", rate(latest.puts)), ("out a second", rate(latest.gets))]
    if queue.has_tasks:
        told = queue.run(queue.tasks.stats())
        pairs: list[tuple[str, Child]] = [(word, number(of)) for word, of in told.words.items()]
        pairs += speeds
        pairs += [
            ("deliveries", number(told.deliveries)),
            ("oldest ready", duration(told.oldest_ready_age)),
            ("bound", _bound(told.maxsize, queued(told.counts))),
            ("state", standing(told) or "open"),
            *(("limit", str(limit)) for limit in told.limits),
        ]
        return layout.facts(pairs)
    stats = queue.stats()
    return layout.facts(
        [
            ("queued", number(stats.length)),
            ("bound", _bound(stats.maxsize, stats.length)),
            *speeds,
            ("in flight", number(stats.in_flight)),
            ("set aside", number(stats.rejected)),
            ("unfinished", number(stats.unfinished)),
            ("put so far", number(stats.produced_messages)),
            ("got so far", number(stats.consumed_messages)),
            ("state", "shut down" if stats.closed else "open"),
        ]
    )


def _clients(found: Diagnosis | TaskDiagnosis) -> Child:
    is_of_items = isinstance(found, Diagnosis)
    heads = ["Role", "Client", "Alive", "Has waited"]
    if not is_of_items:
        heads = ["Worker", "Alive", "Works", "At a time", "Tubes", "Tasks", "At"]
    rows = []
    for client in known_clients(found):
        peer = layout.process(client["id"], client["host"], client["pid"])
        alive = ALIVE[client["alive"]]
        cells: list[Child] = [client["role"], peer, alive, duration(client.get("waited"))]
        if not is_of_items:
            cells = [peer, alive, *_worker(client)]
        rows.append(layout.row(heads, cells, "gone" if client["alive"] is False else None))
    lines: list[Child] = []
    if isinstance(found, Diagnosis):
        lines = [element("p", _waiting(found, side)) for side in (found.put, found.get)]
    none = "No process is known to use it." if is_of_items else "No worker is there."
    return [
        element("h2", "Clients" if is_of_items else "Workers"),
        layout.table(heads, rows, none),
        lines,
    ]


def _worker(row: dict[str, Any]) -> list[Child]:
    """Make the cells of a worker behind its process."""
    tubes = ", ".join("all" if tube is None else tube for tube in row["tubes"])
    at = [f"{task['id']} for {duration(task['for'])}" for task in row["at"][:_MOST_AT]]
    late = [f"{id}, beyond its ttr" for id in row["late"]]
    return [
        duration(row["works"]),
        str(row["concurrency"] or NOTHING),
        tubes or NOTHING,
        number(row["tasks"]),
        element("ul", [element("li", one) for one in at + late]) if at + late else NOTHING,
    ]


def _tubes(context: Context, queue: Named) -> Child:
    """Show the tubes that have tasks or are paused."""
    stats = queue.run(queue.tasks.stats())
    heads = ["Tube", *(state.word.capitalize() for state in NAMES), "State"]
    if context.settings.allow_actions:
        heads.append("Actions")
    rows = []
    for tube in sorted({*stats.tubes, *stats.paused_tubes}):
        counts = stats.tubes[tube].counts if tube in stats.tubes else dict.fromkeys(NAMES, 0)
        is_paused = tube in stats.paused_tubes
        if not (is_paused or any(counts.values())):
            continue
        what = "resume" if is_paused else "pause"
        cells: list[Child] = [tube, *(number(counts[state]) for state in NAMES)]
        cells.append("paused" if is_paused else "open")
        doing = action(context, queue, what, what.capitalize(), id=tube)
        rows.append(layout.row(heads, [*cells, doing] if doing else cells))
    if not rows:
        return None
    return [element("h2", "Tubes"), layout.table(heads, rows[:_MOST_TUBES], "")]


def _waiting(found: Diagnosis, side: Side) -> str:
    """Say which clients wait for which, at one side."""
    if side.waits_for == "nothing":
        return f"A {side.operation} would not wait."
    waits_for = {"item": "an item", "role": f"the {side.role} role"}.get(side.waits_for, "space")
    why = found.explain(side.operation)
    return f"A {side.operation} waits for {waits_for}; the queue {why}."


def _items(context: Context, queue: Named) -> Child:
    if not context.settings.show_content:
        return element(
            "p",
            "The content of items is hidden: start the dashboard with --show-content.",
            class_="note",
        )
    items = queue.run(queue.items.peek_items(_MOST_ITEMS))
    shown = [element("li", show(item, True)) for item in items]
    empty = element("p", "Nothing is queued.", class_="note")
    head = element("h2", "Next"), signatures(items, True)
    return [*head, element("ol", shown, class_="items") if shown else empty]


def _rejected(context: Context, queue: Named) -> Child:
    there = queue.stats().rejected
    if not there:
        return None
    items = queue.run(queue.items.rejected(min(there, MOST_REJECTED)))
    heads = ["Item", "Actions"] if context.settings.allow_actions else ["Item"]
    rows = []
    for item in items:
        cells: list[Child] = [show(item, context.settings.show_content)]
        if context.settings.allow_actions:
            back = action(context, queue, "requeue", "Put back", id=mark_of(item))
            gone = "It is gone for good."
            cells.append([back, action(context, queue, "drop", "Remove", gone, mark_of(item))])
        rows.append(layout.row(heads, cells))
    more = f", the oldest {len(items)} of them" if there > len(items) else ""
    head = element("h2", f"Set aside: {number(there)}{more}")
    return [head, signatures(items, context.settings.show_content), layout.table(heads, rows, "")]


def _actions(context: Context, queue: Named, found: Diagnosis | TaskDiagnosis) -> Child:
    if not context.settings.allow_actions:
        return None
    kept = "buried tasks" if queue.has_tasks else "items that were set aside"
    whole = "all its tasks, in whatever state" if queue.has_tasks else "all that is queued"
    again = f"All {kept} are {'ready' if queue.has_tasks else 'queued'} again."
    gone = f"All {kept} are gone for good."
    requeue = "Make buried ready" if queue.has_tasks else "Put all back"
    drop = f"Remove {'buried' if queue.has_tasks else 'rejected'}"
    pausing = None
    if isinstance(found, TaskDiagnosis):
        pausing = action(context, queue, "resume", "Resume")
        if not found.paused:
            until = "No worker gets a task until it is resumed."
            pausing = action(context, queue, "pause", "Pause", until)
    deleted = "The queue and everything in it is removed, for all programs."
    doing = [
        pausing,
        action(context, queue, "requeue", requeue, again),
        action(context, queue, "drop", drop, gone),
        action(context, queue, "empty", "Purge", f"This drops {whole}, for good."),
        action(context, queue, "shut_down", "Shut down", "Nothing can be put any more, for good."),
        action(context, queue, "remove", "Delete", deleted),
    ]
    return element("section", element("h2", "Actions"), element("div", doing, class_="actions"))
