"""Real signals, as often as they come, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pressure_mp import JoinableQueue, Queue

PROGRAM = """
import random, signal, sys, warnings
import pressure_mp
warnings.simplefilter("ignore")
url, name, kind, buffering = sys.argv[1:]
signal.signal(signal.SIGALRM, signal.default_int_handler)
if buffering == "unasked":
    from pressure_mp.buffering import pace
    pace._WINDOW = 10  # however slow the machine is, it reads ahead
    q = getattr(pressure_mp, kind)(url=url)
    q.put_many(range(300))
else:
    ahead = int(buffering)
    q = getattr(pressure_mp, kind)(0, name, url=url, buffering=ahead, prefetch=ahead)
    q.open()  # loads modules: Python cannot load one whose loading was interrupted
done = getattr(q, "task_done", None) if kind == "JoinableQueue" else None
got, acknowledged, interrupts, limit = [], 0, 0, 0.003
def acknowledge():
    global acknowledged
    while done and acknowledged < len(got):
        try:
            done()
        except pressure_mp.TaskDoneError:  # the call before was interrupted when it was done
            pass
        acknowledged += 1
while True:
    try:
        while True:  # within the try, so that no step between two turns is without it
            if len(got) == 300:
                signal.signal(signal.SIGALRM, signal.SIG_IGN)
                break
            signal.setitimer(signal.ITIMER_REAL, random.expovariate(1 / limit) + 1e-6)
            acknowledge()
            # Called from C: no interrupt comes between the return of the get and the append.
            got.extend(map(q.get, (True,)))
            if not interrupts:
                limit *= 0.95  # however fast it is, it is interrupted
        break
    except KeyboardInterrupt:
        interrupts += 1
        limit = max(limit, 0.003) * 1.02  # however slow the machine is, it ends
acknowledge()
if done:
    q.join()
left = q.qsize()
q.close()
print(interrupts)
assert left == 0, left
assert got == list(range(300)), got
"""


@pytest.mark.skipif(
    sys.version_info < (3, 11),
    reason="Python 3.10 runs signal handlers when a function has returned, and its result is lost",
)
@pytest.mark.parametrize("buffering", [0, 20, "unasked"])
@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_a_consumer_in_a_storm_of_signals_gets_each_item_once_in_order(
    server, name, kind, buffering
):
    make = {"Queue": Queue, "JoinableQueue": JoinableQueue}[kind]
    q = make(0, name, url=server.url)
    if buffering != "unasked":
        q.put_many(range(300))
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, server.url, name, kind, str(buffering)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout) > 0
    assert q.qsize() == 0
    assert q.stats().in_flight == 0
