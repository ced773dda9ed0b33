"""The commands that change a queue while programs use it: configure, pause, resume, limit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from ..encoding.task_values import check_tube, milliseconds
from ..handles.arguments import check_maxsize
from ..sync.tasks import settings
from .broker import Named, with_queue
from .output import Decorator, as_json, write_json

_NONE, _FOREVER = "none", "forever"
#: The values of options that are words.
_WORDS = {_NONE: None, _FOREVER: True}
_RATE = re.compile(r"([1-9]\d*)/(\d+\.?\d*|)(s|min|h)")
_SECONDS = {"s": 1, "min": 60, "h": 3600}


def _limit(read: Callable[[str], Any], what: str, *words: str) -> Callable[[str], Any]:
    """Return what reads a limit, or one of the words."""

    def convert(text: str) -> Any:
        try:
            return text if text in words else read(text)
        except ValueError:
            known = "".join(f", nor {word!r}" for word in words)
            raise click.BadParameter(f"{text!r} is not {what}{known}") from None

    return convert


def _time(option: str, help: str, *words: str) -> Decorator:
    reads = _limit(float, "a number of seconds", _NONE, *words)
    return click.option(option, type=reads, metavar="SECONDS", help=help)


def _number(option: str, help: str) -> Decorator:
    return click.option(option, type=_limit(int, "a number", _NONE), metavar="NUMBER", help=help)


@with_queue
@_time("--ttr", "How long a worker may have a task.")
@_time("--ttl", "How long a task may be ready before it is dropped.")
@_time("--zombie", 'How long a task stays after it was processed, or "forever".', _FOREVER)
@click.option("--keep/--no-keep", default=None, help="Whether processed tasks stay for ever.")
@_number("--max-deliveries", "How often a task is taken before it is buried.")
@_number("--per-key", "How many tasks of one key may be taken at a time.")
@click.option(
    "--id",
    type=click.Choice(settings.IDS),
    metavar="KIND",
    help="How programs that open the queue from now on make the ids of tasks: "
    f"{', '.join(settings.IDS)}.",
)
@click.option(
    "--maxsize",
    type=int,
    help="The bound, 0 for none: how many items are queued, or tasks are ready or waiting, before "
    "a put waits. A queue of items has no other options.",
)
@as_json
def configure(queue: Named, in_json: bool, maxsize: int | None, **given: Any) -> None:
    """Change the options of the queue NAME while programs use it, and show them.

    Options that are not given stay as they are; "none" removes a limit. A new option counts for
    what happens from now on: a --ttr for the tasks that are taken from now on.
    """
    stated = {name: _WORDS.get(one, one) for name, one in given.items() if one is not None}
    if queue.has_tasks:
        if maxsize is not None:
            stated["maxsize"] = maxsize
        tasks = queue.tasks
        changed = tasks.configure(settings.change(stated)) if stated else tasks.recorded()
        _show(queue.run(changed).stated(), in_json)
        return
    if stated:
        raise click.UsageError("a queue of items has only --maxsize: the others are for tasks")
    if maxsize is not None:
        queue.run(queue.items.set_bound(check_maxsize(maxsize)))
    _show({"maxsize": queue.run(queue.items.stats()).maxsize}, in_json)


def _show(options: dict[str, Any], in_json: bool) -> None:
    if in_json:
        write_json(options)
        return
    for name, value in options.items():
        is_forever = name == "zombie" and value is True
        shown = _NONE if value is None else _FOREVER if is_forever else value
        click.echo(f"{name:<16}{shown}")


_tube = click.option("--tube", metavar="TUBE", help="Only this tube of the queue.")


@with_queue
@_tube
def pause(queue: Named, tube: str | None) -> None:
    """Pause the queue of tasks NAME for all programs: no worker gets a task until it is resumed.

    Puts go on, and workers finish the tasks that they have.
    """
    _check_tasks(queue, "paused")
    queue.run(queue.tasks.pause(check_tube(tube), True))


@with_queue
@_tube
def resume(queue: Named, tube: str | None) -> None:
    """Resume the queue of tasks NAME, which was paused: workers get its tasks again.

    A tube that was paused by itself stays so until it is named by --tube.
    """
    _check_tasks(queue, "paused")
    queue.run(queue.tasks.pause(check_tube(tube), False))
    stats = queue.run(queue.tasks.stats())
    paused = ["The queue"] if stats.paused else [f"Tube {one!r}" for one in stats.paused_tubes]
    for one in paused:
        click.echo(f"{one} is still paused.", err=True)


def _check_tasks(queue: Named, what: str) -> None:
    if not queue.has_tasks:
        raise click.UsageError(f"a queue of items cannot be {what}: only queues of tasks can")


def _read_rate(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, float]:
    """Read a rate as a number of tasks and of seconds; 0 tasks for "none"."""
    if text == _NONE:
        return 0, 1.0
    found = _RATE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a rate such as 100/s or 10/5min, nor 'none'")
    number, times, unit = found.groups()
    return int(number), float(times or 1) * _SECONDS[unit]


@with_queue
@click.argument("rate", callback=_read_rate)
@_tube
@click.option("--each-key", is_flag=True, help="The tasks of each key by themselves.")
def limit(queue: Named, rate: tuple[int, float], tube: str | None, each_key: bool) -> None:
    """Limit how many tasks of the queue NAME all workers together get: RATE is 100/s, 10/min, 1/5s,
    or "none" for no limit.

    The queue and each tube can have a limit each, and another for each key. `pressure-mp info`
    shows them.
    """
    _check_tasks(queue, "limited")
    number, seconds = rate
    per = milliseconds("RATE", seconds, least=0.001)
    queue.run(queue.tasks.limit(check_tube(tube), number, per, each_key))
