"""An exception of a signal handler while a process ends: it ends all the same, and others get what
it had in flight."""

from __future__ import annotations

import random
import subprocess
import sys

import started
from programs import interrupted_ends as program
from waiting import lasting


def test_end_of_a_process(request, server, name):
    every = 1 if request.config.getoption("--every-place", default=False) else 101
    ends = [program.__file__, server.url, name, str(random.randrange(every)), str(every)]
    done = subprocess.run(
        [sys.executable, *ends],
        env=started.environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    print(f"{request.node.name}: {done.stdout.strip()} places")
    # What an interrupted one left of its anonymous queue, the next one cleared.
    with server.client() as client:
        assert lasting(client, f"{name}:{{anonymous*") == []
