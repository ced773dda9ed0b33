"""What processes that tests start need in order to import the modules of this folder."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

SUPPORT = str(Path(__file__).parent)


def environment(**variables: str) -> dict[str, str]:
    """This process's, with ``variables``, for a process that imports modules of this folder."""
    return {**os.environ, "PYTHONPATH": SUPPORT, **variables}


#: Starts processes that share nothing with this one, as "spawn" does, in a tenth of the time: each
#: is forked from one that has imported what takes long.
quickly = multiprocessing.get_context("forkserver")
quickly.set_forkserver_preload(
    ["psutil", "pressure_mp.sync.queues", "pressure_mp.engines.redis.engine"]
)


def run_and_die(program: Callable[..., object], *arguments: object) -> None:
    """Run a program that kills its process in the end."""
    process = quickly.Process(target=program, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
