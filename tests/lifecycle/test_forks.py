"""A signal that comes while a process forks: its handler runs when the fork is over."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: A hook of C, so that no handler runs in it, says that the signal came.
PROGRAM = """
import logging  # has hooks of its own, of Python
import os, signal, sys
from _thread import interrupt_main
from functools import partial
from pressure_mp import Queue

ACTS = dict(item.split("=") for item in sys.argv[1:])

class Caught(BaseException):
    pass

def raises(*_):
    raise Caught

def notes(*_):
    noted.append(os.getpid())

noted = []
comes = partial(interrupt_main, signal.SIGALRM)
signal.signal(signal.SIGALRM, globals()[ACTS["handler"]])
if ACTS["place"] == "imported before":
    os.register_at_fork(**{ACTS["moment"]: comes})
with Queue(url="memory://") as q:
    q.put(1)
    if ACTS["place"] == "imported behind":
        os.register_at_fork(**{ACTS["moment"]: comes})
    seen = "nothing"
    before = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT)
    parent = os.getpid()
    try:
        os.fork()
    except Caught:
        seen = "raised"
    if os.getpid() in noted:
        seen = f"noted {noted.count(os.getpid())}"
    is_as_before = before == (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT))
    role = "parent" if os.getpid() == parent else "child"
    sys.stdout.write(f"{role}: {seen}, {is_as_before}\\n")
    sys.stdout.flush()
    if role == "child":
        os._exit(0)
    os.wait()
"""

FORKS = {
    ("before", "imported before"): ("parent",),
    ("before", "imported behind"): ("parent",),
    ("after_in_parent", "imported before"): ("parent",),
    ("after_in_parent", "imported behind"): ("parent",),
    ("after_in_child", "imported before"): ("child",),
    ("after_in_child", "imported behind"): ("child",),
}


@pytest.mark.parametrize("handler", ["raises", "notes"])
@pytest.mark.parametrize(("moment", "place"), FORKS)
def test_a_signal_that_comes_in_a_fork_is_handled_behind_it_where_it_came(moment, place, handler):
    act = [f"moment={moment}", f"place={place}", f"handler={handler}"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *act], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    handled = {"raises": "raised", "notes": "noted 1"}[handler]
    expected = {
        f"{role}: {handled if role in FORKS[moment, place] else 'nothing'}, True"
        for role in ("parent", "child")
    }
    assert set(done.stdout.splitlines()) == expected
