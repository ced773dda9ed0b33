"""The report on a task: the text, kept with the task, that says how the work on it went.

It is the text of the last error, the traceback of that error, and the progress of a delivery, with
``SEPARATOR`` between; empty parts at the end are left out. The progress is the delivery (the
number of the take, and the process that made it) and the bytes of the value in base64, with spaces
between. So no take has to remove it: a later delivery is another one.
"""

from __future__ import annotations

import base64
import traceback
from typing import NamedTuple

from ..exceptions import ItemTooLargeError
from .user_exceptions import in_words

SEPARATOR = "\x1f"
#: The most characters of an error, of which the beginning is kept, and of a traceback, of which the
#: end is kept.
LONGEST_ERROR, LONGEST_TRACEBACK = 1000, 4000
#: The most bytes of a progress, encoded: each look at the task reads them.
LARGEST_PROGRESS = 8192


class Report(NamedTuple):
    """The parts of a report; each is empty if the report does not have it."""

    error: str = ""
    traceback: str = ""
    progress: str = ""


def read(report: str) -> Report:
    return Report(*report.split(SEPARATOR, 2))


def of_error(error: str | BaseException) -> str:
    """Make the report on a task that failed. An exception that was never raised has no
    traceback."""
    if not isinstance(error, BaseException):
        return _clean(error)[:LONGEST_ERROR]
    text = _clean(in_words(error))[:LONGEST_ERROR]
    if error.__traceback__ is None:
        return text
    lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return f"{text}{SEPARATOR}{_clean(lines.rstrip())[-LONGEST_TRACEBACK:]}"


def _clean(text: str) -> str:
    """Replace what would divide the report, and what no broker can store."""
    text = text.replace("\0", " ").replace(SEPARATOR, " ")
    return text.encode(errors="backslashreplace").decode()


def with_progress(report: str, call: int, owner: str, progress: bytes) -> str:
    """Return the report with the progress of a delivery. Raises ItemTooLargeError."""
    if len(progress) > LARGEST_PROGRESS:
        raise ItemTooLargeError(
            f"the progress of a task has {len(progress):,} bytes, more than {LARGEST_PROGRESS:,}: "
            "tell less; the result of the task, or a queue, can have more"
        )
    error, lines, _ = read(report)
    encoded = base64.b64encode(progress).decode()
    return SEPARATOR.join((error, lines, f"{call} {owner} {encoded}"))


def progress_of(report: str, call: int, owner: str) -> bytes | None:
    """Return the progress of a delivery, encoded; None if it told of none."""
    delivery, _, encoded = read(report).progress.rpartition(" ")
    return base64.b64decode(encoded) if delivery == f"{call} {owner}" else None


def last_progress(report: str) -> bytes:
    """Return the progress of the last delivery that told of one, encoded."""
    return base64.b64decode(read(report).progress.rpartition(" ")[2])
