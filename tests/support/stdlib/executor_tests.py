"""CPython's own tests of executors, over ours: one class for each suite and start method."""

from __future__ import annotations

import importlib
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import pressure_mp

_WHERE = "test.test_concurrent_futures"


def _module(name: str) -> Any:
    """A part of CPython's tests; all of them are in one module before Python 3.12."""
    whole = importlib.import_module(_WHERE)
    return importlib.import_module(f"{_WHERE}.{name}") if hasattr(whole, "__path__") else whole


_util, _shutdown = _module("util"), _module("test_shutdown")

SUITES: dict[str, type] = {
    "ExecutorTest": _module("executor").ExecutorTest,
    "WaitTests": _module("test_wait").WaitTests,
    "AsCompletedTests": _module("test_as_completed").AsCompletedTests,
    "ExecutorShutdownTest": _shutdown.ExecutorShutdownTest,
    "InitializerMixin": _module("test_init").InitializerMixin,
    "FailingInitializerMixin": _module("test_init").FailingInitializerMixin,
    "ExecutorDeadlockTest": _module("test_deadlock").ExecutorDeadlockTest,
}
MIXINS = {
    "fork": _util.ProcessPoolForkMixin,
    "spawn": _util.ProcessPoolSpawnMixin,
    "forkserver": _util.ProcessPoolForkserverMixin,
}


class Left(NamedTuple):
    """A test that is not run, and why."""

    reason: str


PRIVATE = Left("it reads private attributes of ProcessPoolExecutor")

#: There is no other list.
LEFT_OUT = {
    "ExecutorShutdownTest.test_cancel_futures": Left(
        "it wants at least one of 50 calls to be done that are cancelled at once: here all of them "
        "are, while no worker is ready"
    ),
    "ExecutorShutdownTest.test_hang_gh83386": Left(
        "CPython skips it for processes, by the class's name: its program does not import "
        "multiprocessing"
    ),
    "ExecutorShutdownTest.test_submit_after_interpreter_shutdown": Left(
        "it looks for the word RuntimeError in a traceback: ExecutorShutDown is one by another name"
    ),
    "ExecutorDeadlockTest.test_shutdown_deadlock_pickle": PRIVATE,
}

#: Tests that sleep, and so take more than a second.
SLOW = {
    "ExecutorTest.test_map_timeout",
    "ExecutorShutdownTest.test_hang_issue12364",
    "ExecutorShutdownTest.test_interpreter_shutdown",
    "ExecutorDeadlockTest.test_crash_big_data",
    *(f"WaitTests.{name}" for name in dir(SUITES["WaitTests"]) if name.startswith("test_")),
    *(f"AsCompletedTests.{name}" for name in dir(SUITES["AsCompletedTests"]) if "test_" in name),
}


def case(suite: str, method: str) -> type[unittest.TestCase]:
    """A suite's tests with our executor, whose workers are started so.

    Its own base class waits until all threads have ended, and one of ours looks after queues.
    """
    body = {"executor_type": pressure_mp.Executor}
    return type(suite, (SUITES[suite], MIXINS[method], unittest.TestCase), body)


NAMES = [
    f"{suite}.{test}"
    for suite in SUITES
    for test in unittest.TestLoader().getTestCaseNames(case(suite, "fork"))
]


@contextmanager
def programs_with_our_executor() -> Iterator[None]:
    """Programs that tests start import the class from here."""
    run = _shutdown.assert_python_ok

    def start(flag: str, text: str, *rest: Any, **options: Any) -> Any:
        return run(flag, text.replace("concurrent.futures import", "pressure_mp import"), *rest)

    with mock.patch.object(_shutdown, "assert_python_ok", start):
        yield
