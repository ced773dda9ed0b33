"""The command that changes the options of a queue while programs use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..engines.contract.task_records import TaskSettings
from ..handles.arguments import check_maxsize
from ..sync.tasks import settings
from .broker import Named, with_queue
from .completion import Command, queue_name
from .output import as_json, write_json

_NONE, _FOREVER = "none", "forever"
#: The values of options that are words.
_WORDS = {_NONE: None, _FOREVER: True}


def _limit(read: Callable[[str], Any], what: str, *words: str) -> Callable[[str], Any]:
    """Return what reads a limit, or one of the words."""

    def convert(text: str) -> Any:
        try:
            return text if text in words else read(text)
        except ValueError:
            known = "".join(f", nor {word!r}" for word in words)
            raise click.BadParameter(f"{text!r} is not {what}{known}") from None

    return convert


def _time(option: str, help: str, *words: str) -> Callable[[Command], Command]:
    reads = _limit(float, "a number of seconds", _NONE, *words)
    return click.option(option, type=reads, metavar="SECONDS", help=help)


def _number(option: str, help: str) -> Callable[[Command], Command]:
    return click.option(option, type=_limit(int, "a number", _NONE), metavar="NUMBER", help=help)


@click.command()
@queue_name()
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
@with_queue
def configure(queue: Named, in_json: bool, maxsize: int | None, **given: Any) -> None:
    """Change the options of the queue NAME while programs use it, and show them.

    Options that are not given stay as they are; "none" removes a limit. A new option counts for
    what happens from now on: a --ttr for the tasks that are taken from now on.
    """
    stated = {name: _WORDS.get(one, one) for name, one in given.items() if one is not None}
    if queue.has_tasks:
        if maxsize is not None:
            stated["maxsize"] = maxsize
        _show(_configure(queue, stated).stated(), in_json)
        return
    if stated:
        raise click.UsageError("a queue of items has only --maxsize: the others are for tasks")
    if maxsize is not None:
        queue.run(queue.items.set_bound(check_maxsize(maxsize)))
    _show({"maxsize": queue.run(queue.items.stats()).maxsize}, in_json)


def _configure(queue: Named, stated: dict[str, Any]) -> TaskSettings:
    if not stated:
        return queue.run(queue.tasks.recorded())
    return queue.run(queue.tasks.configure(settings.change(stated)))


def _show(options: dict[str, Any], in_json: bool) -> None:
    if in_json:
        write_json(options)
        return
    for name, value in options.items():
        is_forever = name == "zombie" and value is True
        shown = _NONE if value is None else _FOREVER if is_forever else value
        click.echo(f"{name:<16}{shown}")
