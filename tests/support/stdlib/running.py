"""Runs one test of CPython's own as a test of ours."""

from __future__ import annotations

import unittest
from typing import Any

import pytest

from pressure_mp.sync import object_queue
from stdlib.differences import DIFFERENCES

NO_TEST_PACKAGE = "this interpreter ships without its test package"


def names_in(case: type[unittest.TestCase], suite: type) -> list[Any]:
    """The names of a suite's tests, for ``parametrize``; what is listed as different must fail."""
    names = unittest.TestLoader().getTestCaseNames(case)
    return [
        pytest.param(name, marks=_marks(case.__name__, f"{suite.__name__}.{name}"))
        for name in names
    ]


def _marks(case: str, name: str) -> list[pytest.MarkDecorator]:
    listed = DIFFERENCES.get(name)
    if listed is None or (listed.cases and case not in listed.cases):
        return []
    return [pytest.mark.xfail(reason=listed.reason, raises=listed.raises, strict=True)]


def run(case: type[unittest.TestCase], test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it, and see that it was a queue of ours that it tested."""
    made = []
    make = object_queue.ObjectQueue.__init__

    def count(self: object_queue.ObjectQueue, *args: Any, **options: Any) -> None:
        made.append(type(self))
        make(self, *args, **options)

    monkeypatch.setattr(object_queue.ObjectQueue, "__init__", count)
    case(test).debug()
    assert made, f"{test} made no queue of ours"
