"""A server of etcd with one member, for the engine in ``more_engines``."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from http.client import HTTPConnection, HTTPException

from ports import free_port
from waiting import until

from brokers.broker import Broker
from brokers.servers import _die_too
from pressure_mp import engines
from pressure_mp.engines import registry

#: A file system without a disk, if there is one: etcd flushes each commit.
_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "more_engines")


def use() -> None:
    """Have the URLs of etcd read in this process."""
    engines.__path__.append(_FOLDER)
    registry._KINDS["etcd"] = registry._Kind("etcd", "etcd:EtcdEngine")


class Etcd(Broker):
    """It can be stopped, and killed and started again."""

    scheme = "etcd"

    @staticmethod
    def is_there() -> bool:
        return shutil.which("etcd") is not None

    def start(self) -> Etcd:
        self._directory = tempfile.mkdtemp(prefix="pressure-etcd-", dir=_MEMORY)
        self.port, self._peers = free_port(), free_port()
        self.run()
        return self

    def run(self) -> None:
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self.port, self._peers))
        command = ["etcd", "--data-dir", self._directory, "--log-level", "error"]
        command += ["--listen-client-urls", clients, "--advertise-client-urls", clients]
        command += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
        command += ["--initial-cluster", f"default={peers}", "--max-txn-ops", "10000"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, preexec_fn=_die_too, **quiet)
        until(self._is_healthy)

    def _is_healthy(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/health")
            return b"true" in connection.getresponse().read()
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self._directory)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    @property
    def url(self) -> str:
        return self.url_that_loses(0)

    def url_that_loses(self, share: float) -> str:
        """A URL whose clients lose the replies of this share of their commits."""
        return f"etcd://127.0.0.1:{self.port}/{share}"
