"""CPython's tests of executors, from the running interpreter, over ours."""

from __future__ import annotations

import importlib

import pytest
from stdlib.running import NO_TEST_PACKAGE, Result

pytest.importorskip("test.test_concurrent_futures", reason=NO_TEST_PACKAGE)
theirs = importlib.import_module("stdlib.executor_tests")

pytestmark = [
    # Since Python 3.12 a fork warns when there are threads.
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
    # Where a test keeps the initializer's message, what it keeps it in.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.usefixtures("collected"),
]


def run(name, method, url, monkeypatch):
    if name in theirs.LEFT_OUT:
        pytest.skip(theirs.LEFT_OUT[name].reason)
    monkeypatch.setenv("PRESSURE_URL", url)
    suite, _, test = name.partition(".")
    result = Result()
    with theirs.programs_with_our_executor():
        theirs.case(suite, method)(test).run(result)
    if result.error is not None:
        raise result.error


@pytest.mark.parametrize("name", [name for name in theirs.NAMES if name not in theirs.SLOW])
def test_executor(name, valkey, monkeypatch):
    run(name, "fork", valkey.url, monkeypatch)


@pytest.mark.executors
@pytest.mark.parametrize("method", theirs.MIXINS)
@pytest.mark.parametrize("name", theirs.NAMES)
def test_executor_with_every_start_method(name, method, broker, monkeypatch):
    run(name, method, broker.url, monkeypatch)


def test_every_test_that_is_left_out_still_exists():
    assert set(theirs.LEFT_OUT) <= set(theirs.NAMES)
