"""Backoffs that do not say how long a task waits."""

from __future__ import annotations

import math

import pytest

from pressure_mp.handles import base_task

#: What a program may state as ``backoff``.
WRONG = [
    pytest.param(lambda deliveries: {}[deliveries], id="raises"),
    pytest.param(lambda deliveries: math.nan, id="nan"),
    pytest.param(lambda deliveries: 10.0**30, id="too long"),
    pytest.param(lambda deliveries: math.inf, id="infinite"),
    pytest.param(lambda deliveries: -1, id="negative"),
    pytest.param(lambda deliveries: "1", id="text"),
    pytest.param(-1, id="no function"),
]

_DEFAULT = 3600


def have_long_default(monkeypatch) -> None:
    """A task for which no backoff is stated waits for an hour."""
    monkeypatch.setattr(base_task, "DEFAULT", lambda deliveries: _DEFAULT * deliveries)


def is_default(task) -> bool:
    """Whether a task waits after its first delivery as one for which no backoff is stated."""
    return task.state == "W" and abs(task.due - task.since - _DEFAULT) < 0.1


def told(caplog, task, queue) -> bool:
    """Whether the log has the error of the backoff of a task, once."""
    text = f"the backoff of task {task.id!r} of {queue.name!r} fails: it waits as by default"
    (line,) = (record for record in caplog.records if record.getMessage() == text)
    return line.levelname == "ERROR" and line.exc_info is not None
