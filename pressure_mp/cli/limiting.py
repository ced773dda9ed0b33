"""The command that limits how many tasks of a queue workers get in a time."""

from __future__ import annotations

import re

import click

from ..encoding.task_values import check_tube, milliseconds
from .broker import Named, with_queue
from .completion import queue_name
from .pausing import tube

_RATE = re.compile(r"([1-9]\d*)/(\d+\.?\d*|)(s|min|h)")
_SECONDS = {"s": 1, "min": 60, "h": 3600}


def _read(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, float]:
    """Read a rate as a number of tasks and of seconds; 0 tasks for "none"."""
    if text == "none":
        return 0, 1.0
    found = _RATE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a rate such as 100/s or 10/5min, nor 'none'")
    number, times, unit = found.groups()
    return int(number), float(times or 1) * _SECONDS[unit]


@click.command()
@queue_name()
@click.argument("rate", callback=_read)
@tube
@click.option("--each-key", is_flag=True, help="The tasks of each key by themselves.")
@with_queue
def limit(queue: Named, rate: tuple[int, float], tube: str | None, each_key: bool) -> None:
    """Limit how many tasks of the queue NAME all workers together get: RATE is 100/s, 10/min, 1/5s,
    or "none" for no limit.

    The queue and each tube can have a limit each, and another for each key. `pressure-mp info`
    shows them.
    """
    if not queue.has_tasks:
        raise click.UsageError("a queue of items cannot be limited: only queues of tasks can")
    number, seconds = rate
    per = milliseconds("RATE", seconds, least=0.001)
    queue.run(queue.tasks.limit(check_tube(tube), number, per, each_key))
