"""The exit statuses of the command. docs/command.md lists these."""

from __future__ import annotations

from ..exceptions import (
    Empty,
    Full,
    PressureError,
    QueueDoesNotExistError,
    QueueInUseError,
    TaskNotFound,
)

#: The command failed.
FAILED = 1
#: The command line cannot be understood. It is click's own.
USAGE = 2
#: The time that was given was up.
TIME_IS_UP = 3
#: There is no such queue, or no such task.
MISSING = 4
#: ``doctor`` found something that loses data.
FOUND = 5
#: As a shell reports a program that Ctrl-C ended, and a program whose reader ended.
INTERRUPTED = 130
READER_GONE = 141


def of(error: PressureError) -> int:
    if isinstance(error, (QueueDoesNotExistError, TaskNotFound)):
        return MISSING
    if isinstance(error, (Empty, Full, QueueInUseError)):
        return TIME_IS_UP
    return FAILED
