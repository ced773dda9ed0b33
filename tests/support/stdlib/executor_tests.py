"""CPython's own tests of executors, over ours.

One class for each suite and start method, at module level: a spawned child gets what it calls by its
module's name.
"""

from __future__ import annotations

import importlib
import sys
import unittest
from concurrent import futures
from typing import Any
from unittest import mock

import pressure_mp

if sys.version_info >= (3, 12):
    _PACKAGE = "test.test_concurrent_futures"
    _util, _executor, _wait, _as_completed, _shutdown, _init, _deadlock = (
        importlib.import_module(f"{_PACKAGE}.{name}")
        for name in (
            *("util", "executor", "test_wait", "test_as_completed", "test_shutdown"),
            *("test_init", "test_deadlock"),
        )
    )
else:  # they are in one module
    _util = _executor = _wait = _as_completed = _shutdown = _init = _deadlock = (
        importlib.import_module("test.test_concurrent_futures")
    )

SUITES = (
    _executor.ExecutorTest,
    _wait.WaitTests,
    _as_completed.AsCompletedTests,
    _shutdown.ExecutorShutdownTest,
    _init.InitializerMixin,
    _init.FailingInitializerMixin,
    _deadlock.ExecutorDeadlockTest,
)
MIXINS = {
    "fork": _util.ProcessPoolForkMixin,
    "spawn": _util.ProcessPoolSpawnMixin,
    "forkserver": _util.ProcessPoolForkserverMixin,
}


def _make(suite: type, method: str) -> type[unittest.TestCase]:
    """A suite's tests with our executor, whose workers are started so."""
    body = {"executor_type": pressure_mp.Executor, "__module__": __name__}
    name = f"{suite.__name__}_{method}"
    return type(name, (suite, MIXINS[method], _util.BaseTestCase), body)


CASES: dict[tuple[type, str], type[unittest.TestCase]] = {
    (suite, method): _make(suite, method) for suite in SUITES for method in MIXINS
}
globals().update({case.__name__: case for case in CASES.values()})


def in_place_of_the_stdlib() -> Any:
    """Programs that a test starts, as text, import this from ``concurrent.futures``."""
    return mock.patch.object(futures, "Executor", pressure_mp.Executor)
