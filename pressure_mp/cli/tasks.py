"""The commands that show tasks and workers."""

from __future__ import annotations

from typing import Any

import click

from ..administration.clients import diagnose, known_clients
from ..encoding import reports
from ..encoding.display import Content, content_of, printable
from ..encoding.task_values import check_tube, decode_id
from ..operations.task_queue import DecodedTask
from ..operations.task_results import shown_progress
from ..states import NAMES, named
from .broker import Named, with_queue
from .output import (
    Column,
    as_json,
    at_most,
    duration,
    number,
    write_json,
    write_pairs,
    write_rows,
)
from .repair import find_id


@with_queue
@click.argument("id", required=False)
@click.option(
    "--state", help="Only tasks in this state, as a letter or a word, such as B or buried."
)
@click.option("--tube", help="Only tasks in this tube (part of the queue).")
@at_most("Show at most this many tasks.", 100)
@as_json
def tasks(
    queue: Named, id: str | None, state: str | None, tube: str | None, limit: int, in_json: bool
) -> None:
    """Show the tasks of the queue NAME, the next one first, each with its last error.

    With an ID show that task alone, with the traceback of that error.
    """
    if id is not None:
        if state is not None or tube is not None:
            raise click.UsageError("an ID excludes --state and --tube: it names one task")
        _show(queue.run(queue.tasks.peek(find_id(queue, id))), in_json)
        return
    states = "".join(NAMES) if state is None else read_state(state)
    found = queue.run(queue.tasks.list(states, check_tube(tube), limit))
    now = queue.run(queue.tasks.stats()).now
    if in_json:
        for task in found:
            write_json(_as_json(task))
        return
    columns = (
        Column("id", lambda task: str(decode_id(task.id))),
        Column("state", lambda task: named(task.record.state).word),
        Column("for", lambda task: duration(now - task.record.since / 1000), True),
        Column("taken", lambda task: number(task.record.deliveries), True, 2),
        Column("tube", lambda task: task.record.tube or "-", leaves=2),
        Column("key", lambda task: task.record.key or "-", leaves=3),
        Column("progress", _progress, leaves=3, is_long=True),
        Column("error", lambda task: reports.read(task.record.report).error or "-", is_long=True),
        Column("data", lambda task: content_of(task.data).text, leaves=1, is_long=True),
    )
    write_rows(found, columns)


def _show(task: DecodedTask, in_json: bool) -> None:
    traceback = reports.read(task.record.report).traceback
    shown = _as_json(task)
    if in_json:
        write_json(shown | {"traceback": traceback or None})
        return
    shown |= {"data": content_of(task.data).text, "progress": _progress(task)}
    write_pairs((name, "-" if value is None else str(value)) for name, value in shown.items())
    if traceback:
        click.echo("\n" + "\n".join(map(printable, traceback.splitlines())))


def _progress_in(task: DecodedTask) -> Content | None:
    told = shown_progress(task.record)
    return None if told is None else content_of(told)


def _progress(task: DecodedTask) -> str:
    told = _progress_in(task)
    return "-" if told is None else told.text


def read_state(text: str) -> str:
    try:
        state = named(text)
    except KeyError:
        state = None
    if state not in NAMES:
        known = ", ".join(f"{letter} ({word})" for letter, word in NAMES.items())
        raise click.UsageError(f"{text!r} is not a state; the states are {known}")
    return str(state)


def _as_json(task: DecodedTask) -> dict[str, Any]:
    id, record, data = task
    progress = _progress_in(task)
    return {
        "id": decode_id(id),
        "state": record.state,
        "priority": record.priority,
        "created": record.created / 1000,
        "since": record.since / 1000,
        "due": record.due / 1000 if record.due else None,
        "deliveries": record.deliveries,
        "tube": record.tube or None,
        "key": record.key or None,
        "unique": record.unique or None,
        "owner": record.owner or None,
        "progress": progress and progress.as_json(),
        "error": reports.read(record.report).error or None,
        "data": content_of(data).as_json(),
    }


@with_queue
@as_json
def workers(queue: Named, in_json: bool) -> None:
    """Show the workers of the queue of tasks NAME; of another queue, the processes that use it.

    For a worker: how long it has worked, how many tasks it processes at a time, from which tubes,
    how many tasks it has now, its oldest task, and its version of the package. A process that took
    tasks without a worker is shown while it has some. For a queue of items: the role of each
    process, how long it has waited, and how many unacknowledged items it has; "some" if other
    processes may have some of them. Only processes that the broker knows are shown; whether a
    process of another host is alive may not be known.
    """
    found = known_clients(diagnose(queue))
    if in_json:
        for worker in found:
            write_json(worker)
        return
    columns = (
        Column("role", lambda row: row["role"]),
        Column("host", lambda row: row["host"] or row["id"], is_long=True),
        Column("pid", lambda row: "" if row["pid"] is None else str(row["pid"]), True),
        Column("alive", lambda row: _ALIVE[row["alive"]]),
        *(_OF_TASKS if queue.has_tasks else _OF_ITEMS),
    )
    write_rows(found, columns)


_ALIVE = {True: "alive", False: "ended", None: "not known"}


def _has(row: dict[str, Any]) -> str:
    if "in_flight" not in row:
        return ""
    return "some" if row["in_flight"] is None else str(row["in_flight"])


def _at(row: dict[str, Any]) -> str:
    """Return the task that a worker has had longest."""
    return "-" if not row["at"] else f"{row['at'][0]['id']} for {duration(row['at'][0]['for'])}"


def _tubes(row: dict[str, Any]) -> str:
    return ", ".join("all" if tube is None else tube for tube in row["tubes"]) or "-"


_OF_ITEMS = (
    Column("waits", lambda row: duration(row.get("waited")), True),
    Column("has", _has, True),
)
_OF_TASKS = (
    Column("works", lambda row: duration(row["works"]), True, 1),
    Column("at a time", lambda row: str(row["concurrency"] or "-"), True, 2),
    Column("tubes", _tubes, leaves=2),
    Column("has", lambda row: str(row["tasks"]), True),
    Column("at", _at, leaves=1),
    Column("version", lambda row: row["version"] or "-", leaves=3),
)
