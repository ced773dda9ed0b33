"""Many calls, while workers are killed, connections break and the server is killed: every future
ends, with what a serial run says."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import threading
import time

import pytest
from executors import functions
from faults.proxy import Faults, Proxy
from started import quickly
from waiting import Background

from pressure_mp import Executor, WorkerLost

pytestmark = pytest.mark.timeout(900)

WORKERS, MOST = 4, 3
#: Bytes between two faults of a connection: a reply with many notices comes through.
MEAN = 300_000
#: Seconds in which each future ends, once nothing happens any more.
QUIET = 120


def test_every_call_is_done_whatever_breaks(durable, tmp_path, seed, long, figures):
    calls, kills, restarts = (10_000, 200, 10) if long else (400, 12, 1)
    chance = random.Random(seed)
    paths = [str(tmp_path / f"{one}") for one in range(calls)]
    began = time.monotonic()
    with (
        Proxy(durable, Faults(seed, requests=MEAN, replies=MEAN)) as proxy,
        Executor(WORKERS, url=proxy.url, mp_context=quickly, max_deliveries=MOST) as executor,
    ):
        futures = [
            executor.submit(functions.note_and_work, path, at) for at, path in enumerate(paths)
        ]
        killing = Background(kill, executor, futures, kills, chance)
        restart(durable, futures, restarts)  # a server ends with the thread that started it
        outcomes = [outcome(future) for future in futures]
        killed = killing.result()
        cuts = proxy.cuts
    runs = [functions.runs(path) for path in paths]
    figures.note(
        seed=seed,
        calls=calls,
        calls_per_second=calls / (time.monotonic() - began),
        killed=len(killed),
        restarts=restarts,
        cuts=cuts,
        run_again=sum(len(pids) > 1 for pids in runs),
        lost=outcomes.count("lost"),
    )
    for at, pids in enumerate(runs):
        assert 1 <= len(pids) <= MOST
        assert outcomes[at] in ([at, "lost"] if len(pids) == MOST else [at])
        again = collections.Counter(pids[:-1])  # each of these ended in a death
        assert set(again) <= killed
        assert max(again.values(), default=1) == 1
    assert executor._broken is False


def number_done(futures):
    return sum(future.done() for future in futures)


def restart(server, futures, number):
    """Kill the server so often, while there are calls to do, and start it again."""
    for one in range(number):
        before = len(futures) * (one + 1) // (number + 1)
        while number_done(futures) < before:
            time.sleep(0.02)
        server.kill()
        server.start()


def kill(executor, futures, number, chance):
    """Kill workers, one after the other, until so many are or all is done; return their ids."""
    killed = set()
    done = threading.Semaphore(0)
    for future in futures:
        future.add_done_callback(lambda _: done.release())
    while len(killed) < number and not all(future.done() for future in futures):
        for _ in range(max(len(futures) * 3 // number // 4, 1)):
            done.acquire(timeout=QUIET)  # a worker that is killed has been at work
        there = sorted(set(executor._processes) - killed)
        if there:
            victim = chance.choice(there)
            killed.add(victim)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
    return killed


def outcome(future):
    try:
        return future.result(QUIET)
    except WorkerLost:
        return "lost"
