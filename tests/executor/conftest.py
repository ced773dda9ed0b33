"""Executors, workers that are threads of the test or processes elsewhere, and other clients."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import started
from brokers.servers import Server
from executors import client as client_program
from executors.threads import Workers

from pressure_mp import Executor


@pytest.fixture
def executor(url: str, name: str) -> Iterator[Executor]:
    """An executor whose workers are elsewhere; at its end it does not wait for unfinished calls."""
    executor = Executor(0, name, url=url)
    yield executor
    executor.shutdown(wait=False, cancel_futures=True)
    executor._queue.delete()


@pytest.fixture
def workers(executor: Executor) -> Iterator[Workers]:
    workers = Workers(executor._queue)
    yield workers
    workers.end()


@pytest.fixture
def make(url: str) -> Iterator[Callable[..., Executor]]:
    """Makes executors with worker processes here, which are shut down in the end."""
    made = []

    def make(max_workers: int = 1, method: str = "fork", **options: Any) -> Executor:
        context = multiprocessing.get_context(method)
        made.append(Executor(max_workers, mp_context=context, url=url, **options))
        return made[-1]

    yield make
    for executor in made:
        executor.shutdown(cancel_futures=True)


@pytest.fixture
def program(url: str) -> Callable[..., subprocess.Popen[str]]:
    """Starts another client of the broker."""

    def start(*args: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, client_program.__file__, *map(str, args)],
            env=started.environment(PRESSURE_URL=url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def start(url: str, name: str, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the worker program; what still runs in the end is killed, and its children end by
    that."""
    running = []

    def start(*options: object, stderr: Any = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "pressure_mp.worker", name, "--url", url, *map(str, options)],
            env=started.environment(),
            cwd=tmp_path,
            stderr=stderr,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def keeping_server() -> Iterator[Server]:
    """A server that keeps what it is told."""
    server = Server("valkey", Server.durable)
    yield server.start()
    server.stop()


@pytest.fixture
def files(tmp_path: Path) -> SimpleNamespace:
    return SimpleNamespace(runs=str(tmp_path / "runs"), go_on=tmp_path / "go on")
