"""CPython's tests of ``multiprocessing.Queue``, from the running interpreter, in processes."""

from __future__ import annotations

import importlib
import multiprocessing.queues
import sys

import pytest
from stdlib.running import NO_TEST_PACKAGE, names_in, run

import pressure_mp

cpython = pytest.importorskip("test._test_multiprocessing", reason=NO_TEST_PACKAGE)
cases = importlib.import_module("stdlib.multiprocessing_tests")


CASES = [cases.Fork, cases.Spawn, cases.Forkserver, cases.BufferedFork]


@pytest.fixture(autouse=True)
def in_place_of_the_stdlib(server_url, monkeypatch):
    """Some of the tests, and a helper that closes their queues, name the stdlib's classes."""
    monkeypatch.setenv("PRESSURE_URL", server_url)
    monkeypatch.setattr(multiprocessing, "Queue", pressure_mp.Queue)
    monkeypatch.setattr(multiprocessing, "JoinableQueue", pressure_mp.JoinableQueue)
    monkeypatch.setattr(multiprocessing.queues, "Queue", pressure_mp.Queue)
    # One test works by importing this; it has to be imported again each time.
    monkeypatch.delitem(sys.modules, "imported_by_an_imported_module", raising=False)


# Since Python 3.12 a fork warns when other tests left threads behind.
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("test", names_in(cases.OverBroker, cpython._TestQueue))
def test_multiprocessing_queue(case, test, monkeypatch):
    run(case, test, monkeypatch)
