"""Many calls, and workers that are killed: every future ends, with what a serial run says."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import random
import signal
import threading

import pytest
from executors import functions

from pressure_mp import Executor, WorkerLost

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

CALLS, KILLS, MOST = 400, 12, 3


@pytest.mark.parametrize("broker", ["valkey", "postgres"])
def test_every_call_is_done_while_workers_are_killed(broker, request, tmp_path):
    url = request.getfixturevalue(broker).url
    context = multiprocessing.get_context("fork")
    begun = [str(tmp_path / f"{one}") for one in range(CALLS)]
    with Executor(3, url=url, mp_context=context, max_deliveries=MOST) as executor:
        futures = [executor.submit(functions.note, path, at) for at, path in enumerate(begun)]
        killed = kill(executor, futures)
        outcomes = [outcome(future) for future in futures]
    times = [functions.runs(path) for path in begun]
    for at, pids in enumerate(times):
        assert 1 <= len(pids) <= MOST
        assert outcomes[at] in ([at, "lost"] if len(pids) == MOST else [at])
        again = collections.Counter(pids[:-1])  # each of these ended in a death
        assert set(again) <= killed
        assert max(again.values(), default=1) == 1
    assert executor._broken is False


def kill(executor, futures):
    """Kill workers of it, one after the other, until so many are or all is done; who they were."""
    killed, draw = set(), random.Random(8)
    progress = threading.Event()
    for future in futures:
        future.add_done_callback(lambda _: progress.set())
    while len(killed) < KILLS and not all(future.done() for future in futures):
        progress.wait(60)  # what is killed has been at work
        progress.clear()
        there = sorted(set(executor._processes) - killed)
        if there:
            victim = draw.choice(there)
            killed.add(victim)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
    return killed


def outcome(future):
    try:
        return future.result(60)
    except WorkerLost:
        return "lost"
