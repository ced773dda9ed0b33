"""Note how far an import is, in a file beside the imported one, so that a killed import can go on.

A note is written before each batch is put. Behind the items that it counts, at most one batch is in
the queue. The queue's own count of puts tells how much of the batch is there, if no other producer
puts into it.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from ..identity.client import client_id
from ..operations.brokers import identify
from .broker import Named
from .export_file import Exported

#: Items that are put between two notes.
BATCH = 100


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
        alone = before is None or (
            before.alone and produced == _after(before.produced, done - before.done)
        )
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
        partial = self._path.with_name(f"{self._path.name}.part")
        with partial.open("wb") as out:
            out.write(json.dumps(asdict(note)).encode())
            out.flush()
            os.fsync(out.fileno())
        partial.replace(self._path)
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _after(produced: int | None, number: int) -> int | None:
    return None if produced is None else produced + number


def _certain(note: Note) -> str:
    sure = f"items 1 to {note.done} are in the queue, " if note.done else ""
    return f"{sure}items {note.done + 1} to {note.done + note.trying} may be there or not"
