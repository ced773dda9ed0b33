"""Runs one test of CPython's own as a test of ours."""

from __future__ import annotations

import unittest
from typing import Any

import pytest

from pressure_mp.sync import object_queue
from stdlib.differences import DIFFERENCES

NO_TEST_PACKAGE = "this interpreter ships without its test package"


def names_in(case: type[unittest.TestCase], suite: type | None = None) -> list[Any]:
    """The names of a suite's tests, for ``parametrize``; a test that is listed as different must
    fail. Without a suite, that is the class that has the test."""
    return [
        pytest.param(name, marks=_marks(case.__name__, f"{_suite(case, suite, name)}.{name}"))
        for name in unittest.TestLoader().getTestCaseNames(case)
    ]


def _suite(case: type, suite: type | None, test: str) -> str:
    return (suite or next(one for one in case.__mro__ if test in vars(one))).__name__


def _marks(case: str, name: str) -> list[pytest.MarkDecorator]:
    listed = DIFFERENCES.get(name)
    if listed is None or listed.by_chance or (listed.cases and case not in listed.cases):
        return []
    return [pytest.mark.xfail(reason=listed.reason, raises=listed.raises, strict=True)]


class Result(unittest.TestResult):
    """What a test raised. By then it is torn down, and its event loop closed if it had one."""

    error: BaseException | None = None

    def addError(self, test: Any, err: Any) -> None:
        self.error = self.error or err[1]

    addFailure = addError

    def addSkip(self, test: Any, reason: str) -> None:
        pytest.skip(reason)


def run(case: type[unittest.TestCase], test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it, and see that it was a queue of ours that it tested."""
    made = []
    make = object_queue.ObjectQueue.__init__

    def count(self: object_queue.ObjectQueue, *args: Any, **options: Any) -> None:
        made.append(type(self))
        make(self, *args, **options)

    monkeypatch.setattr(object_queue.ObjectQueue, "__init__", count)
    result = Result()
    case(test).run(result)
    if result.error is not None:
        listed = DIFFERENCES.get(f"{_suite(case, None, test)}.{test}")
        if listed is not None and listed.by_chance and isinstance(result.error, listed.raises):
            pytest.xfail(listed.reason)
        raise result.error
    assert made or "alias" in test, f"{test} made no queue of ours"
