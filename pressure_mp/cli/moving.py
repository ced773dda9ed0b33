"""The commands that carry items: copy, move, export, import."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from ..exceptions import PressureError
from ..operations.control import FIFO
from ..operations.task_queue import TASKS
from . import carrying, carrying_tasks
from .carrying import Carried, Translator, context_of
from .completing import queue_name
from .output import as_json, write_count
from .place import Named, Place, broker_options

#: What the first line of an exported file says.
_FORMAT = "pressure_mp queue 1"

to_options = (
    click.option("--to-url", metavar="URL", help="The broker of TARGET; else that of SOURCE."),
    click.option("--to-prefix", metavar="TEXT", help="The prefix of TARGET; else that of SOURCE."),
)


def _to(command: Any) -> Any:
    for option in to_options:
        command = option(command)
    return command


@click.command()
@queue_name("source")
@queue_name("target")
@_to
@as_json
@broker_options
def copy(
    source: str,
    target: str,
    to_url: str | None,
    to_prefix: str | None,
    in_json: bool,
    url: str | None,
    prefix: str | None,
) -> None:
    """Put a copy of all that is queued in the queue SOURCE into the queue TARGET.

    TARGET may be at another broker, of any kind. It is created like SOURCE if it does not exist.
    Signed items need PRESSURE_AUTHKEY: they are signed anew for TARGET. Items of a priority or
    fair queue keep their priorities and keys, but not their weights. Tasks are copied that are
    ready, waiting or buried, with id, priority, tube, key and times, but without their count of
    deliveries, their error and their result.
    """
    queue, loader = _ends(source, target, to_url, to_prefix, url, prefix)
    loader.load_all(_ways(queue.discipline).look_at_all(queue))
    write_count(loader.number, "copied", in_json)


def _ways(discipline: str) -> Any:
    """How what is in a queue is carried."""
    return carrying_tasks if discipline == TASKS else carrying


def _ends(
    source: str,
    target: str,
    to_url: str | None,
    to_prefix: str | None,
    url: str | None,
    prefix: str | None,
) -> tuple[Named, Any]:
    place = Place(url, prefix)
    queue = place.find(source)
    there = Place(to_url or url, to_prefix or prefix)
    if there.address == place.address and source == target:
        raise click.UsageError("SOURCE and TARGET are the same queue")
    ways = _ways(queue.discipline)
    other = ways.open_target(there, target, queue.discipline, ways.settings_of(queue))
    return queue, ways.Loader(other, Translator(context_of(queue), context_of(other)))


@click.command()
@queue_name("source")
@queue_name("target")
@click.option("-n", "limit", type=click.IntRange(min=1), help="Move at most this many items.")
@_to
@as_json
@broker_options
def move(
    source: str,
    target: str,
    limit: int | None,
    to_url: str | None,
    to_prefix: str | None,
    in_json: bool,
    url: str | None,
    prefix: str | None,
) -> None:
    """Move all that is queued in the queue SOURCE into the queue TARGET.

    As copy, but each item is removed from SOURCE when it is in TARGET. The next item of SOURCE is
    put first, so a lifo queue has the reverse order afterwards. A task that a worker takes
    meanwhile stays in SOURCE. If the command is killed, no item is lost, but some may be in both
    queues.
    """
    queue, loader = _ends(source, target, to_url, to_prefix, url, prefix)
    _ways(queue.discipline).move_all(queue, loader, limit)
    write_count(loader.number, "moved", in_json)


@click.command(name="export")
@queue_name()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--rejected", is_flag=True, help="Write the items that were set aside instead.")
@as_json
@broker_options
def export(
    name: str, file: Path, rejected: bool, in_json: bool, url: str | None, prefix: str | None
) -> None:
    """Write all that is queued in the queue NAME to FILE; '-' is the standard output.

    The items stay in the queue. FILE has a line of JSON for each item, and a last line with their
    number and a checksum. It appears under its name only when it is complete. The number of items
    is also written to standard error.
    """
    queue = Place(url, prefix).find(name)
    ways = _ways(queue.discipline)
    head = {"discipline": queue.discipline, **ways.settings_of(queue)}
    if rejected:
        items = map(Carried, queue.run(queue.items.rejected(queue.stats().rejected)))
        head["discipline"] = FIFO  # where they belonged is not kept
    else:
        items = ways.look_at_all(queue)
    if str(file) == "-":
        number = _write(sys.stdout.buffer, queue, head, items)
    else:
        partial = file.with_name(f"{file.name}.part")
        with partial.open("wb") as out:
            number = _write(out, queue, head, items)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(file)
    write_count(number, "exported", in_json, err=True)


def _write(out: IO[bytes], queue: Named, head: dict[str, Any], items: Iterator[Any]) -> int:
    digest, number = hashlib.sha256(), 0

    def line(value: dict[str, Any]) -> None:
        text = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        digest.update(text)
        out.write(text)

    prefix, name = context_of(queue)
    line({"format": _FORMAT, "prefix": prefix, "name": name, **head})
    for carried in items:
        number += 1
        line(carried.as_json())
    out.write(json.dumps({"items": number, "sha256": digest.hexdigest()}).encode() + b"\n")
    return number


@click.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@queue_name(required=False)
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    default=0,
    help="Leave out the first N items: an import that failed says which N to give.",
    metavar="N",
)
@as_json
@broker_options
def import_(
    file: Path, name: str | None, skip: int, in_json: bool, url: str | None, prefix: str | None
) -> None:
    """Put the items of an exported FILE into the queue NAME.

    Without NAME: into a queue with the name of the exported one. The queue is created if it does
    not exist. The checksum is compared before the first item is put: an incomplete FILE ends the
    command with status 1.
    """
    head = _check(file)
    place = Place(url, prefix)
    ways = _ways(head["discipline"])
    queue = ways.open_target(place, name or head["name"], head["discipline"], head)
    loader = ways.Loader(queue, Translator((head["prefix"], head["name"]), context_of(queue)))
    read = carrying_tasks.CarriedTask.read if head["discipline"] == TASKS else Carried.read
    try:
        loader.load_all(map(read, _lines(file, skip)))
    except PressureError as error:
        done = skip + loader.number
        raise click.ClickException(f"{error}; to go on: --skip {done}") from error
    except KeyboardInterrupt:
        click.echo(f"To go on: --skip {skip + loader.number}", err=True)
        raise
    write_count(loader.number, "imported", in_json)


def _check(file: Path) -> dict[str, Any]:
    """The first line of a whole file."""
    digest, last, number = hashlib.sha256(), b"", -1
    with file.open("rb") as lines:
        first = lines.readline()
        lines.seek(0)
        for line in lines:
            digest.update(last)
            last, number = line, number + 1
    try:
        head, end = json.loads(first), json.loads(last)
        is_whole = head["format"] == _FORMAT and end["sha256"] == digest.hexdigest()
    except (ValueError, KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise click.ClickException(
            f"{file} is no exported queue, or not whole: its checksum is not that of what is in it"
        )
    found: dict[str, Any] = head
    return found


def _lines(file: Path, skip: int) -> Iterator[dict[str, Any]]:
    with file.open("rb") as lines:
        lines.readline()
        for place, line in enumerate(lines):
            value = json.loads(line)
            if "item" in value and place >= skip:
                yield value
