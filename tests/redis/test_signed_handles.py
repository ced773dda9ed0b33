"""Where a handle's key goes: to child processes, and nowhere else."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys

import pytest
from programs import signing as programs

import pressure_mp
from pressure_mp import Queue

METHODS = ["fork", "spawn", "forkserver"]
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

PUT = """
import pickle, sys
q = pickle.loads(bytes.fromhex(sys.argv[1]))
try:
    q.put_nowait("put")
except Exception as error:
    print(type(error).__name__, error)
try:
    q.get_nowait()
except Exception as error:
    print(type(error).__name__, error)
"""


def elsewhere(q, **environ):
    """What a program that is no part of this process tree says when it uses the handle."""
    run = subprocess.run(
        [sys.executable, "-c", PUT, pickle.dumps(q).hex()],
        env={**os.environ, **environ},
        check=True,
        capture_output=True,
        text=True,
    )
    return run.stdout


@pytest.mark.parametrize("authkey", [None, "given"])
@pytest.mark.parametrize("method", METHODS)
def test_children_have_the_key_without_configuration(valkey, name, method, authkey):
    context = multiprocessing.get_context(method)
    names = (name, f"{name}-2") if authkey else (None, None)
    inbox, outbox = (Queue(name=n, url=valkey.url, authkey=authkey) for n in names)
    child = context.Process(target=programs.echo, args=(inbox, outbox))
    child.start()
    inbox.put("hello")
    assert outbox.get(timeout=20) == "hello"
    child.join()
    assert child.exitcode == 0
    for q in (inbox, outbox):
        if authkey:
            q.delete()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_has_the_key_of_the_process_tree(valkey, name, method):
    with Queue(url=valkey.url) as q:
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(programs.use, (q,)) == "done"
        assert q.get() == "from the worker"


def test_a_given_key_does_not_travel_to_a_pool_that_was_started_without_it(valkey, name):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        q = Queue(name=name, url=valkey.url, authkey="given to this process")
        outcome = pool.apply(programs.use, (q,))
        assert outcome.startswith("AuthenticationError: this handle of queue")
        assert "PRESSURE_AUTHKEY" in outcome
    assert q.empty()
    q.delete()


def test_elsewhere_a_handle_says_that_its_key_is_missing_and_takes_and_puts_nothing(valkey, name):
    q = Queue(name=name, url=valkey.url, authkey="given")
    q.put("stays")
    for environ in ({}, {"PRESSURE_AUTHKEY": "another"}):
        lines = elsewhere(q, **environ).splitlines()
        assert len(lines) == 2
        for line in lines:
            assert line.startswith(f"AuthenticationError this handle of queue '{name}' signs")
    assert (q.qsize(), q.rejected()) == (1, [])
    q.delete()


def test_elsewhere_a_handle_takes_the_key_of_the_environment(valkey, name):
    q = Queue(name=name, url=valkey.url, authkey=["new", "old"])
    assert elsewhere(q, PRESSURE_AUTHKEY="old,other") == ""
    q.delete()


def test_elsewhere_an_anonymous_queue_needs_a_key_of_the_environment(valkey, monkeypatch):
    with Queue(url=valkey.url) as q:
        assert elsewhere(q).count("AuthenticationError") == 2
        assert q.empty()
    monkeypatch.setenv("PRESSURE_AUTHKEY", "shared")
    with Queue(url=valkey.url) as q:
        assert elsewhere(q) == ""


def test_a_handle_without_a_key_stays_unsigned_wherever_it_goes(valkey, name):
    q = Queue(name=name, url=valkey.url)
    q.put("before")
    assert elsewhere(q, PRESSURE_AUTHKEY="a key") == ""
    assert q.get() == "put"
    q.delete()


def test_a_handle_that_is_passed_on_unused_still_knows_which_key_it_needs(valkey, name):
    q = Queue(name=name, url=valkey.url, authkey="given")
    through = Queue(name=f"{name}-through", url=valkey.url)
    through.put(q)
    copy = through.get()
    assert "AuthenticationError" in elsewhere(copy)
    with pytest.raises(pressure_mp.Empty):
        copy.get_nowait()
    q.delete()
    through.delete()
