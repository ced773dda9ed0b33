"""What a signal handler raises while an object is encoded or decoded stays what it is."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from waiting import LIMIT, Background

from pressure_mp import DecodingError, EncodingError, Queue, TaskQueue, interrupts


class Late(Exception):
    """What the signal handler raises."""


def raise_late(number, frame):
    raise Late


class Callable:
    def __call__(self, *args):
        raise Late

    def method(self, number, frame):
        raise Late


@pytest.fixture(params=[raise_late, lambda *args: raise_late(*args), Callable(), Callable().method])
def handler(request):
    before = signal.signal(signal.SIGUSR1, request.param)
    yield
    signal.signal(signal.SIGUSR1, before)


def interrupted():
    os.kill(os.getpid(), signal.SIGUSR1)
    return "item"


class Slow:
    """To pickle it is interrupted; or to unpickle it."""

    def __init__(self, when):
        self.when = when

    def __reduce__(self):
        if self.when == "pickled":
            interrupted()
        return interrupted, ()


@pytest.mark.parametrize("options", [{}, {"authkey": b"key"}, {"buffering": 5, "prefetch": 5}])
def test_while_an_object_is_pickled(url, name, handler, options):
    with Queue(0, name, url=url, **options) as q:
        with pytest.raises(Late):
            q.put(Slow("pickled"))
        with pytest.raises(Late):
            q.put_many([1, Slow("pickled")])
        assert q.empty()
        with pytest.raises(EncodingError):
            q.put(lambda: None)
    with pytest.raises(Late):
        TaskQueue(f"{name}-tasks", url=url).put(Slow("pickled"))


@pytest.mark.parametrize("options", [{}, {"authkey": b"key"}, {"buffering": 5, "prefetch": 5}])
def test_while_an_item_is_unpickled(server, name, handler, options):
    """It is not set aside: the next get has it."""
    with Queue(0, name, url=server.url, **options) as q:
        q.put(Slow("unpickled"))
        for get in (q.get, lambda: q.get_many(1)):
            with pytest.raises(Late):
                get()
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        assert q.get(timeout=LIMIT) == "item"
        assert q.rejected() == []


def test_an_exception_that_an_object_raises_itself_is_an_error_of_encoding(url, name, handler):
    class Broken:
        def __reduce__(self):
            raise Late

    with Queue(0, name, url=url) as q, pytest.raises(EncodingError):
        q.put(Broken())


def fail():
    raise Late


class Fails:
    def __reduce__(self):
        return fail, ()


def test_an_item_that_raises_an_exception_itself_is_set_aside(url, name, handler):
    with Queue(0, name, url=url) as q:
        q.put(Fails())
        with pytest.raises(DecodingError):
            q.get(timeout=LIMIT)
        assert len(q.rejected()) == 1


def test_interrupted_claims_are_given_up_by_one_thread_at_a_time(monkeypatch):
    """The thread of the leases sees to it too, at the same moment."""
    inside, most, begun = [], [], threading.Event()
    monkeypatch.setattr(interrupts, "abandoned", [])

    class Claimant:
        def _give_up(self, claim):
            inside.append(claim)
            most.append(len(inside))
            begun.set()
            time.sleep(0.05)  # for the other one to come in between, if it can
            inside.remove(claim)

    interrupts.abandoned += [(Claimant(), "first"), (Claimant(), "second")]
    other = Background(interrupts.settle)
    assert begun.wait(LIMIT)
    interrupts.settle()
    other.result()
    assert most == [1, 1]
    assert interrupts.abandoned == []
