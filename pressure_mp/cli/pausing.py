"""The commands that pause a queue of tasks, and resume it."""

from __future__ import annotations

import click

from ..encoding.task_values import check_tube
from .broker import Named, with_queue
from .completion import queue_name

tube = click.option("--tube", metavar="TUBE", help="Only this tube of the queue.")


@click.command()
@queue_name()
@tube
@with_queue
def pause(queue: Named, tube: str | None) -> None:
    """Pause the queue of tasks NAME for all programs: no worker gets a task until it is resumed.

    Puts go on, and workers finish the tasks that they have.
    """
    _change(queue, tube, True)


@click.command()
@queue_name()
@tube
@with_queue
def resume(queue: Named, tube: str | None) -> None:
    """Resume the queue of tasks NAME, which was paused: workers get its tasks again.

    A tube that was paused by itself stays so until it is named by --tube.
    """
    _change(queue, tube, False)
    stats = queue.run(queue.tasks.stats())
    paused = ["The queue"] if stats.paused else [f"Tube {one!r}" for one in stats.paused_tubes]
    for one in paused:
        click.echo(f"{one} is still paused.", err=True)


def _change(queue: Named, tube: str | None, paused: bool) -> None:
    if not queue.has_tasks:
        raise click.UsageError("a queue of items cannot be paused: only queues of tasks can")
    queue.run(queue.tasks.pause(check_tube(tube), paused))
