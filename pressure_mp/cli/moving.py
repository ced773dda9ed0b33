"""The commands that carry items: copy, move, export, import."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from ..encoding.large import is_manifest
from ..exceptions import Empty, PressureError, ShutDown
from ..operations.control import FIFO
from ..sync.passing import NextIsLarge, Passing
from .carrying import (
    Carried,
    Loader,
    Translator,
    check_carried,
    context_of,
    look_at_all,
    open_target,
)
from .place import Named, Place, broker_options

#: What the first line of an exported file says.
_FORMAT = "pressure_mp queue 1"

to_options = (
    click.option("--to-url", metavar="URL", help="The broker of TARGET, if it is another one."),
    click.option("--to-prefix", metavar="TEXT", help="The prefix of TARGET, if it is another one."),
)


def _to(command: Any) -> Any:
    for option in to_options:
        command = option(command)
    return command


@click.command()
@click.argument("source")
@click.argument("target")
@_to
@broker_options
def copy(
    source: str,
    target: str,
    to_url: str | None,
    to_prefix: str | None,
    url: str | None,
    prefix: str | None,
) -> None:
    """Put what is queued in SOURCE into TARGET too, at this broker or another, of whatever kind.

    TARGET is created as SOURCE is, if need be. Signed items need PRESSURE_AUTHKEY: they are signed
    for their queue.
    """
    queue, loader = _ends(source, target, to_url, to_prefix, url, prefix)
    loader.load_all(look_at_all(queue))
    click.echo(f"{loader.number} copied.")


def _ends(
    source: str,
    target: str,
    to_url: str | None,
    to_prefix: str | None,
    url: str | None,
    prefix: str | None,
) -> tuple[Named, Loader]:
    place = Place(url, prefix)
    queue = check_carried(place.find(source))
    there = Place(to_url or url, to_prefix or prefix)
    if there.address == place.address and source == target:
        raise click.UsageError("SOURCE and TARGET are the same queue")
    other = open_target(there, target, queue.discipline, queue.stats().maxsize)
    return queue, Loader(other, Translator(context_of(queue), context_of(other)))


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("-n", "limit", type=click.IntRange(min=1), help="Move so many items at most.")
@_to
@broker_options
def move(
    source: str,
    target: str,
    limit: int | None,
    to_url: str | None,
    to_prefix: str | None,
    url: str | None,
    prefix: str | None,
) -> None:
    """Move what is queued in SOURCE into TARGET, as copy does; but each item leaves SOURCE when it
    is in TARGET. The next one goes first: a lifo queue is turned round by that.

    When it is killed in between, some items are in both, and none is in neither.
    """
    queue, loader = _ends(source, target, to_url, to_prefix, url, prefix)
    with Passing(queue.name, queue.discipline, queue.place.options) as passing:
        mover = _Mover(passing, loader)
        try:
            while limit is None or loader.number < limit:
                left = None if limit is None else limit - loader.number
                try:
                    passing.pass_on(mover.load, left, 0)
                except NextIsLarge:
                    passing.pass_on_one(mover.load, 0)
                mover.check()
        except (Empty, ShutDown):
            pass
    click.echo(f"{loader.number} moved.")


class _Mover:
    """Puts what is passed on."""

    def __init__(self, passing: Passing, loader: Loader) -> None:
        self._passing = passing
        self._loader = loader
        self._problem: BaseException | None = None

    def load(self, items: list[bytes]) -> int:
        """Put some; returns how many are there."""
        before = self._loader.number
        try:
            self._loader.load([self._carried(item) for item in items])
        except BaseException as error:
            self._problem = error
        return self._loader.number - before

    def _carried(self, item: bytes) -> Carried:
        return Carried(item, self._passing.fetch(item) if is_manifest(item) else None)

    def check(self) -> None:
        """Raise what went wrong."""
        if self._problem is not None:
            raise self._problem


@click.command(name="export")
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--rejected", is_flag=True, help="Those that were set aside, instead.")
@broker_options
def export(name: str, file: Path, rejected: bool, url: str | None, prefix: str | None) -> None:
    """Write what is queued in the queue NAME to FILE; it stays queued. '-' is the standard output.

    FILE has a line of JSON for each item, and at the end how many there are, and a checksum. It is
    there when it is whole.
    """
    queue = Place(url, prefix).find(name)
    items = (
        map(Carried, queue.run(queue.items.rejected(queue.stats().rejected or 1)))
        if rejected
        else look_at_all(check_carried(queue))
    )
    if str(file) == "-":
        number = _write(sys.stdout.buffer, queue, items)
    else:
        partial = file.with_name(f"{file.name}.part")
        with partial.open("wb") as out:
            number = _write(out, queue, items)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(file)
    click.echo(f"{number} exported.", err=True)


def _write(out: IO[bytes], queue: Named, items: Iterator[Carried]) -> int:
    digest, number = hashlib.sha256(), 0

    def line(value: dict[str, Any]) -> None:
        text = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        digest.update(text)
        out.write(text)

    stats, (prefix, name) = queue.stats(), context_of(queue)
    settings = {"discipline": queue.discipline, "maxsize": stats.maxsize}
    line({"format": _FORMAT, "prefix": prefix, "name": name, **settings})
    for carried in items:
        number += 1
        value: dict[str, Any] = {"item": _encode(carried.item)}
        if carried.content is not None:
            value["content"] = [_encode(segment) for segment in carried.content]
        line(value)
    out.write(json.dumps({"items": number, "sha256": digest.hexdigest()}).encode() + b"\n")
    return number


def _encode(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode()


@click.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("name", required=False)
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    default=0,
    help="Leave out the first N items: an import that failed says how many went in.",
    metavar="N",
)
@broker_options
def import_(file: Path, name: str | None, skip: int, url: str | None, prefix: str | None) -> None:
    """Put the items of an exported FILE into the queue NAME, else into that of its name.

    The checksum is compared before the first is put. Exit status 1: FILE is not whole.
    """
    head = _check(file)
    place = Place(url, prefix)
    discipline = head["discipline"] if head["discipline"] in ("lifo", FIFO) else FIFO
    queue = open_target(place, name or head["name"], discipline, head["maxsize"])
    translator = Translator((head["prefix"], head["name"]), context_of(queue))
    loader = Loader(queue, translator)
    try:
        loader.load_all(_read(file, skip))
    except PressureError as error:
        done = skip + loader.number
        raise click.ClickException(f"{error}; to go on: --skip {done}") from error
    except KeyboardInterrupt:
        click.echo(f"To go on: --skip {skip + loader.number}", err=True)
        raise
    click.echo(f"{loader.number} imported.")


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


def _read(file: Path, skip: int) -> Iterator[Carried]:
    with file.open("rb") as lines:
        lines.readline()
        for place, line in enumerate(lines):
            value = json.loads(line)
            if "item" in value and place >= skip:
                content = value.get("content")
                yield Carried(
                    base64.b64decode(value["item"]),
                    None if content is None else [bytearray(base64.b64decode(c)) for c in content],
                )
