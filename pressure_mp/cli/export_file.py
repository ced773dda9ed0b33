"""Read and write the file of an exported queue: a line of JSON for the queue, one for each item,
and a last line with their number and a checksum. Beside it, note how far an import is, so that a
killed import can go on.

A note is written before each batch is put. Behind the items that it counts, at most one batch is in
the queue. The queue's own count of puts tells how much of the batch is there, if no other producer
puts into it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import click

from ..identity.client import client_id
from ..operations.brokers import identify
from .broker import Named

#: The format in the first line.
_FORMAT = "pressure_mp queue 1"
#: Items that are put between two notes.
BATCH = 100


class Exported(NamedTuple):
    """A whole file: its first line, how many items it has, and its checksum."""

    head: dict[str, Any]
    items: int
    sha256: str


def write(out: IO[bytes], head: dict[str, Any], items: Iterable[Any]) -> int:
    """Write such a file; return how many items it has."""
    digest, number = hashlib.sha256(), 0

    def line(value: dict[str, Any]) -> None:
        text = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        digest.update(text)
        out.write(text)

    line({"format": _FORMAT, **head})
    for carried in items:
        number += 1
        line(carried.as_json())
    out.write(json.dumps({"items": number, "sha256": digest.hexdigest()}).encode() + b"\n")
    return number


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write in this block; it has its name only when it is complete."""
    partial = path.with_name(f"{path.name}.part")
    with partial.open("wb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())
    partial.replace(path)


def check(file: Path) -> Exported:
    """Read a whole file. Raises click.ClickException for a file that is not whole."""
    digest, last = hashlib.sha256(), b""
    with file.open("rb") as lines:
        first = lines.readline()
        lines.seek(0)
        for line in lines:
            digest.update(last)
            last = line
    try:
        head, end = json.loads(first), json.loads(last)
        if head["format"] == _FORMAT and end["sha256"] == digest.hexdigest():
            return Exported(head, end["items"], end["sha256"])
    except (ValueError, KeyError, TypeError):
        pass
    raise click.ClickException(
        f"{file} is not an exported queue, or is not complete: its checksum does not match"
    )


def read(file: Path, skip: int) -> Iterator[dict[str, Any]]:
    """Iterate over the items of a whole file, without the first ``skip``."""
    with file.open("rb") as lines:
        lines.readline()
        for place, line in enumerate(lines):
            value = json.loads(line)
            if "item" in value and place >= skip:
                yield value


@dataclass(frozen=True)
class Note:
    """The certain facts: the first ``done`` items of the file with that checksum are in the queue,
    and any number of the ``trying`` items behind them.

    ``produced`` is how many items were ever put into the queue before these, None of a queue of
    tasks; ``producer`` is the client that puts them. ``alone`` is False if another producer was
    seen.
    """

    sha256: str
    done: int
    trying: int
    produced: int | None
    producer: str
    alone: bool = True


class Progress:
    """The note of one import of a file into one queue."""

    def __init__(self, file: Path, exported: Exported, queue: Named) -> None:
        # The same queue has the same note, however its broker's URL is spelled.
        target = json.dumps([queue.broker.run(identify()), queue.name])
        digest = hashlib.sha256(target.encode()).hexdigest()[:12]
        self._file = file
        self._exported = exported
        self._queue = queue
        self._path = file.with_name(f"{file.name}.import-{digest}.json")
        self._note: Note | None = None

    def find_start(self, skip: int | None, resume: bool) -> int:
        """Return how many items to leave out. Raises click.ClickException if the user has to
        decide."""
        if skip is not None:
            return skip
        note = self._read()
        if note is None:
            if resume:
                raise click.ClickException(
                    f"there is nothing to resume: no import of {self._file} into "
                    f"{self._queue.name!r} was interrupted ({self._path} does not exist)"
                )
            return 0
        if note.sha256 != self._exported.sha256:
            raise click.ClickException(
                f"{self._path} belongs to an interrupted import of another {self._file}: remove "
                "it, or say with --skip N after how many items to begin"
            )
        if not resume:
            raise click.ClickException(
                f"an import of {self._file} into {self._queue.name!r} was interrupted, or is still "
                f"running: {_certain(note)}. --resume continues after the items that are there; "
                "--skip N begins after N items, --skip 0 with the first one"
            )
        return note.done + self._count(note)

    def begin(self, done: int) -> int:
        """Write down that the first ``done`` items are in the queue, and that others follow.
        Returns how many may be put before the next note."""
        exported, before = self._exported, self._note
        produced = None if self._queue.has_tasks else self._queue.stats().produced_messages
        alone = before is None or before.alone
        if before is not None and before.produced is not None:
            alone = alone and produced == before.produced + done - before.done
        trying = min(BATCH, exported.items - done)
        note = Note(exported.sha256, done, trying, produced, client_id(), alone)
        self._write(note)
        self._note = note
        return trying

    def end(self) -> None:
        """Remove the note: the whole file is in the queue."""
        self._path.unlink(missing_ok=True)

    def _count(self, note: Note) -> int:
        """Return how many items behind the note's ``done`` are in the queue."""
        if note.produced is None:
            return 0  # tasks that are in the queue already stay as they are
        stats = self._queue.stats()
        number = stats.produced_messages - note.produced
        is_ours = number == 0 or (note.alone and stats.producer == note.producer)
        if is_ours and 0 <= number <= note.trying:
            return number
        raise click.ClickException(
            f"{_certain(note)}, and the queue does not tell which: another producer put into "
            f"{self._queue.name!r} meanwhile, or it lost its count. --skip {note.done} puts none "
            f"too few, and up to {note.trying} twice; --skip {note.done + note.trying} puts none "
            f"twice, and up to {note.trying} not at all"
        )

    def _read(self) -> Note | None:
        try:
            return Note(**json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise click.ClickException(
                f"{self._path} is not a note of an import ({error}): remove it, and say with "
                "--skip N after how many items to begin"
            ) from error

    def _write(self, note: Note) -> None:
        """Write the note so that it is there even if this machine fails: the note before does not
        count the items that are put next."""
        with replacing(self._path) as out:
            out.write(json.dumps(asdict(note)).encode())
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _certain(note: Note) -> str:
    sure = f"items 1 to {note.done} are in the queue, " if note.done else ""
    return f"{sure}items {note.done + 1} to {note.done + note.trying} may be there or not"
