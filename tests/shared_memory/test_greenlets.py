"""What waits in a program that gevent or eventlet has patched lets its other greenlets go on."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from started import environment

BEGIN = {
    "gevent": "from gevent import monkey; monkey.patch_all(); from gevent import spawn_later",
    "eventlet": "import eventlet; eventlet.monkey_patch(); spawn_later = eventlet.spawn_after",
}
#: Each begins to wait before the greenlet runs that ends the wait.
CASES = {
    "a get": "q = Queue(); spawn_later(0.2, q.put, 5); assert q.get() == 5",
    "a timeout": "q = Queue(); spawn_later(0.2, q.put, 5); assert q.get(timeout=60) == 5",
    "a put that waits for space": "q = Queue(1); q.put(1); spawn_later(0.2, q.get); q.put(2)",
    "a named queue": "q = Queue(name=N); spawn_later(0.2, q.put, 5); assert q.get() == 5",
    "an executor": "e = Executor(2); assert e.submit(abs, -1).result() == 1; e.shutdown()",
}
#: Forks while calls are at workers. Greenlets of the parent go on in the child.
FORK = """
import os, time
from pressure_mp import Executor
if __name__ == "__main__":
    executor = Executor(1)
    running = executor.submit(time.sleep, 1)
    time.sleep(0.2)
    parent, child = os.getpid(), os.fork()
    while not child and os.getppid() == parent:
        time.sleep(0.1)
    if not child:
        os._exit(0)
    running.result(timeout=30)
    for number in range(20):
        assert executor.submit(abs, -number).result(timeout=30) == number
    os.kill(child, 9)
    executor.shutdown()
"""


def run(program, server):
    """Run a program, which is to end well; returns what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment(PRESSURE_URL=server.url),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def needs(library):
    """Skip where it is not installed. Nothing imports it here: eventlet changes what fork does."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("library", BEGIN)
def test_a_wait_lets_other_greenlets_go_on(server, name, library, case):
    needs(library)
    program = "\n".join(
        [
            BEGIN[library],
            "from pressure_mp import Executor, Queue",
            f"N = {name!r}",
            "if __name__ == '__main__':",
            f"    {CASES[case]}",
            "    if 'q' in globals() and q.name == N: q.delete()",
        ]
    )
    run(program, server)


@pytest.mark.parametrize("library", BEGIN)
def test_the_calls_of_an_executor_come_back_though_its_process_was_forked(server, library):
    needs(library)
    run(BEGIN[library] + FORK, server)


def test_a_fork_calls_the_own_function_of_python_that_eventlet_replaces(server):
    needs("eventlet")
    program = (
        BEGIN["eventlet"]
        + "; import os; from pressure_mp import Queue; Queue().put(1); os.fork() and os.wait()"
    )
    assert "interrupt_main" not in run(program, server)


def test_a_wait_that_is_over_in_time_ends_without_an_item(server):
    """Where nothing comes, the steps of the wait end it."""
    needs("gevent")
    program = (
        BEGIN["gevent"]
        + "; from pressure_mp import Empty, Queue\n"
        + "ticks = []\n"
        + "spawn_later(0.01, lambda: ticks.append(1))\n"
        + "try:\n    Queue().get(timeout=0.3)\nexcept Empty:\n    print(len(ticks))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(PRESSURE_URL=server.url),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.stdout == "1\n", done.stderr
