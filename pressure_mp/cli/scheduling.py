"""The command that shows and changes the schedules of a queue of tasks."""

from __future__ import annotations

from typing import get_args

import click

from ..encoding.schedules import Missed
from ..exceptions import TaskNotFound
from ..operations.periodic import PeriodicTask
from ..sync.tasks.task_queue import TaskQueue
from .broker import Broker, with_broker
from .completion import queue_name
from .output import Column, as_json, duration, write_json, write_rows


@with_broker
@queue_name()
@click.argument("when", required=False)
@click.argument("data", required=False)
@click.option("--name", "called", metavar="SCHEDULE", help="The schedule to add.")
@click.option("--timezone", metavar="ZONE", help="Of a cron line, such as Europe/Paris; else UTC.")
@click.option(
    "--missed",
    type=click.Choice(get_args(Missed)),
    default="once",
    help="The tasks that are put for the times at which there was no worker.",
)
@click.option("--tube", metavar="TUBE", help="The tube of the tasks.")
@click.option("--remove", metavar="SCHEDULE", help="Remove this schedule.")
@as_json
def schedule(
    broker: Broker,
    name: str,
    when: str | None,
    data: str | None,
    called: str | None,
    timezone: str | None,
    missed: Missed,
    tube: str | None,
    remove: str | None,
    in_json: bool,
) -> None:
    """Show the schedules of the queue of tasks NAME. With WHEN and DATA have a task with that data
    put every WHEN seconds, or at the times of a cron line such as "0 6 * * 1-5".

    The workers of the queue put the tasks. A schedule of the same name is replaced; without --name
    the name is made of WHEN and DATA. Python programs get DATA with serializer="text", or "json".
    """
    if (when is None) != (data is None):
        raise click.UsageError("WHEN says when tasks are put, and DATA what: give both")
    if when is None and (called or timezone or tube):
        raise click.UsageError(
            "--name, --timezone and --tube are for a new schedule: give WHEN and DATA"
        )
    if not broker.find(name).has_tasks:
        raise click.UsageError("a queue of items has no schedules: only queues of tasks have")
    with TaskQueue[bytes].attach(name, **{**broker.options, "serializer": "raw"}) as queue:
        if remove is not None and not queue.unschedule(remove):
            raise TaskNotFound(f"queue {name!r} has no schedule {remove!r}")
        if when is not None and data is not None:
            queue.every(
                _read(when),
                data.encode(),
                name=called,
                timezone=timezone,
                missed=missed,
                tube=tube,
            )
        now, schedules = queue.stats().now, queue.schedules()
    if in_json:
        for one in schedules:
            write_json(one._asdict())
        return
    columns = (
        Column("name", lambda one: one.name, is_long=True),
        Column("when", lambda one: f"{one.when:g} s" if isinstance(one.when, float) else one.when),
        Column("timezone", lambda one: one.timezone, leaves=2),
        Column("next", lambda one: _next(one, now), leaves=1),
    )
    write_rows(schedules, columns)


def _read(when: str) -> float | str:
    """Return a number of seconds, or a cron line."""
    try:
        return float(when)
    except ValueError:
        return when


def _next(one: PeriodicTask, now: float) -> str:
    if one.is_buried:
        return "buried"
    seconds = one.next - now
    return f"in {duration(seconds)}" if seconds > 0 else f"{duration(-seconds)} ago"
