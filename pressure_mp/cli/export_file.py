"""Read and write the file of an exported queue: a line of JSON for the queue, one for each item,
and a last line with their number and a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import click

#: The format in the first line.
_FORMAT = "pressure_mp queue 1"


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
