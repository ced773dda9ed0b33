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
    "an executor": "e = Executor(1); assert e.submit(abs, -1).result() == 1; e.shutdown()",
}


def needs(library):
    """Skip where it is not installed. Nothing imports it here: eventlet changes what fork does."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("library", BEGIN)
def test_a_wait_lets_other_greenlets_go_on(server, name, library, case):
    needs(library)
    if (library, case) == ("eventlet", "an executor"):
        pytest.skip("an executor is not for programs that eventlet has patched")
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
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment(PRESSURE_URL=server.url),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr


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
