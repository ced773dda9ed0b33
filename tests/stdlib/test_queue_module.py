"""CPython's tests of ``queue``, from the running interpreter, on every engine and server."""

from __future__ import annotations

import importlib

import pytest
import worlds
from stdlib.running import NO_TEST_PACKAGE, names_in, run

cpython = pytest.importorskip("test.test_queue", reason=NO_TEST_PACKAGE)
cases = importlib.import_module("stdlib.queue_tests")


@pytest.fixture(autouse=True)
def broker(url, monkeypatch):
    monkeypatch.setenv("PRESSURE_URL", url)
    yield
    worlds.end()


def few_calls(case):
    """The tests that do not put tens of thousands of items: a plain, a buffered and an ordered
    queue put as many, and of asyncio each call hands a task to another thread's event loop."""
    params = names_in(case, cpython.BaseQueueTestMixin)
    return [param for param in params if "many_threads" not in param.values[0]]


@pytest.mark.parametrize("test", names_in(cases.QueueOverBroker, cpython.BaseQueueTestMixin))
def test_queue(test, monkeypatch):
    run(cases.QueueOverBroker, test, monkeypatch)


@pytest.mark.parametrize("test", few_calls(cases.JoinableQueueOverBroker))
def test_joinable_queue(test, monkeypatch):
    run(cases.JoinableQueueOverBroker, test, monkeypatch)


@pytest.mark.parametrize("test", few_calls(cases.LifoQueueOverBroker))
def test_lifo_queue(test, monkeypatch):
    run(cases.LifoQueueOverBroker, test, monkeypatch)


@pytest.mark.parametrize(
    "test", names_in(cases.PriorityQueueOverBroker, cpython.BaseQueueTestMixin)
)
def test_priority_queue(test, monkeypatch):
    run(cases.PriorityQueueOverBroker, test, monkeypatch)


@pytest.mark.parametrize("test", names_in(cases.SimpleQueueOverBroker, cpython.BaseSimpleQueueTest))
def test_simple_queue(test, monkeypatch):
    run(cases.SimpleQueueOverBroker, test, monkeypatch)


@pytest.mark.parametrize("test", names_in(cases.QueueOverBroker, cpython.BaseQueueTestMixin))
def test_a_queue_with_buffers(test, monkeypatch):
    run(cases.BufferedQueueOverBroker, test, monkeypatch)


@pytest.mark.parametrize("test", few_calls(cases.JoinableQueueOverBroker))
def test_a_joinable_queue_with_buffers(test, monkeypatch):
    run(cases.BufferedJoinableQueueOverBroker, test, monkeypatch)


@pytest.mark.parametrize("test", names_in(cases.SimpleQueueOverBroker, cpython.BaseSimpleQueueTest))
def test_a_simple_queue_with_buffers(test, monkeypatch):
    run(cases.BufferedSimpleQueueOverBroker, test, monkeypatch)


@pytest.mark.parametrize("case", [cases.QueueOfAsyncio, cases.JoinableQueueOfAsyncio])
@pytest.mark.parametrize("test", few_calls(cases.QueueOverBroker))
def test_a_queue_of_asyncio(case, test, monkeypatch):
    run(case, test, monkeypatch)


@pytest.mark.parametrize("case", [cases.LifoQueueOfAsyncio, cases.PriorityQueueOfAsyncio])
@pytest.mark.parametrize("test", few_calls(cases.LifoQueueOverBroker))
def test_a_queue_of_asyncio_of_another_order(case, test, monkeypatch):
    run(case, test, monkeypatch)
