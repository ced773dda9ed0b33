"""CPython's tests of ``asyncio.Queue``, from the running interpreter, on every engine."""

from __future__ import annotations

import importlib
import sys

import pytest
from stdlib.running import NO_TEST_PACKAGE, names_in, run

from pressure_mp import aio

if sys.version_info < (3, 11):
    pytest.skip("before Python 3.11 they step the event loop", allow_module_level=True)
pytest.importorskip("test.test_asyncio.test_queues", reason=NO_TEST_PACKAGE)
suite = importlib.import_module("stdlib.asyncio_tests")


@pytest.fixture(autouse=True)
def broker(url, monkeypatch):
    monkeypatch.setenv("PRESSURE_URL", url)


def all_tests(queue, others=True):
    """Each test with its class, of queues of other orders too or not."""
    found = []
    for case in suite.cases(suite.rewritten(queue)):
        if others or case.__name__.startswith("Queue"):
            for param in names_in(case):
                name = f"{case.__name__}.{param.values[0]}"
                found.append(pytest.param(case, *param.values, marks=param.marks, id=name))
    return found


@pytest.mark.parametrize(("case", "test"), all_tests(aio.Queue))
def test_asyncio_queue(case, test, monkeypatch):
    run(case, test, monkeypatch)


@pytest.mark.parametrize(("case", "test"), all_tests(aio.JoinableQueue, others=False))
def test_asyncio_queue_that_is_joinable(case, test, monkeypatch):
    run(case, test, monkeypatch)
