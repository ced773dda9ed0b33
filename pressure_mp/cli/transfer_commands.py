"""The commands that carry items: copy, move, export, import."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..administration import repair
from ..exceptions import PressureError, ShutDown
from ..operations.control import FIFO
from ..operations.task_queue import TASKS
from . import export_file, transfer, transfer_tasks
from .broker import Broker, Named, with_broker, with_queue
from .completion import queue_name
from .export_file import Progress
from .output import as_json, at_most, write_count
from .transfer import Carried, Translator, context_of

to_url = click.option("--to-url", metavar="URL", help="The broker of TARGET; else that of SOURCE.")
to_prefix = click.option(
    "--to-prefix", metavar="TEXT", help="The prefix of TARGET; else that of SOURCE."
)


def _with_loader(command: Callable[..., None]) -> click.Command:
    """Make a command that is given the queue SOURCE and a loader of TARGET."""

    @functools.wraps(command)
    def with_both(
        broker: Broker,
        source: str,
        target: str,
        to_url: str | None,
        to_prefix: str | None,
        **given: Any,
    ) -> None:
        queue, at = broker.find(source), broker.options
        there = Broker(to_url or at["url"], to_prefix or at["prefix"])
        if there.address == broker.address and source == target:
            raise click.UsageError("SOURCE and TARGET are the same queue")
        ways = _ways(queue.discipline)
        other = ways.open_target(there, target, queue.discipline, ways.settings_of(queue))
        loader = ways.Loader(other, Translator(context_of(queue), context_of(other)))
        command(queue=queue, loader=loader, **given)

    return with_broker(queue_name("source")(queue_name("target")(with_both)))


def _ways(discipline: str) -> Any:
    """Return the module that carries items, or tasks."""
    return transfer_tasks if discipline == TASKS else transfer


@_with_loader
@to_prefix
@to_url
@as_json
def copy(queue: Named, loader: Any, in_json: bool) -> None:
    """Put a copy of all items or tasks of the queue SOURCE into the queue TARGET.

    TARGET may be at another broker, of any kind. It is created like SOURCE if it does not exist.
    Signed items need PRESSURE_AUTHKEY: they are signed anew for TARGET. Items of a priority or
    fair queue keep their priorities and keys, but not their weights. Tasks are copied that are
    ready, waiting or buried, with id, priority, tube, key and times, but without their count of
    deliveries, their error and their result. If the command is killed, TARGET has the first part of
    the items, and all would be put again: empty TARGET first, or use export and import, which can
    go on. Tasks can be copied again.
    """
    loader.load_all(_ways(queue.discipline).carry_all(queue))
    write_count(loader.number, "copied", in_json)


@_with_loader
@at_most("Move at most this many items.")
@to_prefix
@to_url
@as_json
def move(queue: Named, loader: Any, limit: int | None, in_json: bool) -> None:
    """Move all items or tasks of the queue SOURCE into the queue TARGET.

    As copy, but each item is removed from SOURCE when it is in TARGET. The next item of SOURCE is
    put first, so a lifo queue has the reverse order afterwards. A task that a worker takes
    meanwhile stays in SOURCE. If the command is killed, no item is lost: call it again, and it goes
    on. It had fetched up to 1,000 items, and the ones that it had put come a second time; from a
    priority or fair queue that is at most one item, and of tasks none.
    """
    _ways(queue.discipline).move_all(queue, loader, limit)
    write_count(loader.number, "moved", in_json)


@with_queue
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--rejected", is_flag=True, help="Write the items that were set aside instead.")
@as_json
def export(queue: Named, file: Path, rejected: bool, in_json: bool) -> None:
    """Write all items or tasks of the queue NAME to FILE; '-' is the standard output.

    The items stay in the queue. FILE has a line of JSON for each item, and a last line with their
    number and a checksum. It appears under its name only when it is complete. The number of items
    is also written to standard error.
    """
    ways = _ways(queue.discipline)
    in_prefix, in_queue = context_of(queue)
    head = {"prefix": in_prefix, "name": in_queue, "discipline": queue.discipline}
    head |= ways.settings_of(queue)
    if rejected:
        items = map(Carried, repair.rejected(queue))
        head["discipline"] = FIFO  # the places of rejected items are not kept
    else:
        items = ways.carry_all(queue)
    if str(file) == "-":
        number = export_file.write(sys.stdout.buffer, head, items)
    else:
        with export_file.replacing(file) as out:
            number = export_file.write(out, head, items)
    write_count(number, "exported", in_json, err=True)


@with_broker
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@queue_name(required=False)
@click.option("--resume", is_flag=True, help="Continue where an interrupted import ended.")
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    help="Begin after the first N items, whatever an interrupted import did.",
    metavar="N",
)
@as_json
def import_(
    file: Path, name: str | None, resume: bool, skip: int | None, in_json: bool, broker: Broker
) -> None:
    """Put the items of an exported FILE into the queue NAME.

    Without NAME: into a queue with the name of the exported one. The queue is created if it does
    not exist. The checksum is compared before the first item is put: an incomplete FILE ends the
    command with status 1.

    Beside FILE the command keeps a note of how far it is, and removes it at the end. If the note of
    an interrupted import is there, the command ends with status 1 and says which items are in the
    queue; --resume goes on. No item is put twice, and none is lost, if no other producer has put
    into the queue meanwhile; if one has, --resume says so, and --skip has to be given. A task is
    put again if it was done, and is gone, before the import went on.
    """
    if resume and skip is not None:
        raise click.UsageError("use only one of --resume and --skip")
    found = export_file.check(file)
    head = found.head
    ways = _ways(head["discipline"])
    queue = ways.open_target(broker, name or head["name"], head["discipline"], head)
    progress = Progress(file, found, queue)
    done = start = progress.find_start(skip, resume)
    loader = ways.Loader(queue, Translator((head["prefix"], head["name"]), context_of(queue)))
    read = transfer_tasks.CarriedTask.read if head["discipline"] == TASKS else Carried.read
    items = map(read, export_file.read(file, done))
    try:
        while done < found.items:
            trying = progress.begin(done)
            loader.load_all(itertools.islice(items, trying))
            done += trying
        progress.end()
    except transfer_tasks.OtherData as error:
        place = start + loader.number + 1
        raise click.ClickException(
            f"{error}: to keep the task that is there, go on behind it with --skip {place}; to "
            f"have the file's task, `pressure-mp drop {queue.name} {error.id!s}` and then --resume"
        ) from error
    except ShutDown as error:
        raise click.ClickException(str(error)) from error
    except (PressureError, click.ClickException) as error:
        raise click.ClickException(f"{error}; --resume continues the import") from error
    except KeyboardInterrupt:
        click.echo("To go on: --resume", err=True)
        raise
    write_count(loader.number, "imported", in_json)
