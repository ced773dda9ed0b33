"""Client processes that start in a few milliseconds, are killed and stopped, and are replaced.

They are forked from one process that has all modules loaded and does nothing else. It is this
file, run as a program; :class:`Nursery` is what a test holds of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import started
from waiting import LIMIT, until

from faults import clients, tasks, transactions
from faults.histories import Log


@dataclass
class Client:
    """A process that runs a function of ``faults.clients`` or ``faults.tasks``."""

    name: str
    role: str
    pid: int
    stopped: bool = False
    signals: list[int] = field(default_factory=list)

    def send(self, number: signal.Signals) -> None:
        """A signal; to one that has ended already it does nothing."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
        self.signals.append(number)
        self.stopped = number == signal.SIGSTOP

    @property
    def killed(self) -> bool:
        return signal.SIGKILL in self.signals


class Nursery:
    """Starts clients that log to ``directory``, which may be changed for those that come; in the
    end it leaves no client behind."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clients: list[Client] = []
        self._ended: dict[int, int] = {}
        self._started: list[int] = []
        self._errors = directory / "errors"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=started.environment(),
            )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            pid, status = map(int, line.split())
            if status < 0:
                self._started.append(pid)
            else:
                self._ended[pid] = status

    def start(self, role: str, **arguments: Any) -> Client:
        """A new client; ``role`` names the function."""
        number = len(self.clients)
        name = f"{role}{number}"
        assert self._process.stdin is not None
        json.dump([str(self.directory), role, name, arguments], self._process.stdin)
        print(file=self._process.stdin, flush=True)
        until(lambda: len(self._started) > number)
        client = Client(name, role, self._started[number])
        self.clients.append(client)
        return client

    def has_ended(self, client: Client) -> bool:
        return client.pid in self._ended

    def running(self, role: str) -> list[Client]:
        """Those of a role that work: not killed, not stopped, not at their end."""
        return [
            client
            for client in self.clients
            if client.role == role
            and not (client.killed or client.stopped or self.has_ended(client))
        ]

    def wait(self, limit: float) -> None:
        """Wait until all clients have ended; those that were not killed must have ended well."""
        deadline = time.monotonic() + limit
        until(
            lambda: all(map(self.has_ended, self.clients)) or time.monotonic() > deadline, limit + 5
        )
        stuck = [client for client in self.clients if not self.has_ended(client)]
        assert not stuck, f"after {limit} s they still run: {stuck}\n{self._where(stuck)}"
        self.check()

    def check(self) -> None:
        """Nobody ended with an error so far."""
        failed = [
            client
            for client in self.clients
            if self._ended.get(client.pid, 0) and not client.killed
        ]
        assert not failed, f"{failed}: {self._errors.read_text()[-5000:]}"

    def _where(self, stuck: list[Client]) -> str:
        for client in stuck:
            client.send(signal.SIGUSR1)  # makes it write down where it is
        time.sleep(0.5)
        return self._errors.read_text()[-20000:]

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()  # then it kills those that are left
        self._process.wait(LIMIT)
        self._reading.join(10)
        self._process.stdout.close()


def _main() -> None:
    """Fork a client for each line; tell of each one that starts (-1) or ends (its status)."""
    children: set[int] = set()

    def bury(*_: object) -> None:
        for pid, status in _dead():
            children.discard(pid)
            os.write(1, b"%d %d\n" % (pid, abs(os.waitstatus_to_exitcode(status))))

    signal.signal(signal.SIGCHLD, bury)
    for line in sys.stdin:
        directory, role, name, arguments = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid == 0:
            _live(Path(directory), role, name, arguments)
        children.add(pid)
        os.write(1, b"%d -1\n" % pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _dead() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            yield pid, status


def _function(role: str) -> Callable[..., None]:
    found: Callable[..., None] = next(
        getattr(module, role) for module in (clients, tasks, transactions) if hasattr(module, role)
    )
    return found


def _live(directory: Path, role: str, name: str, arguments: dict[str, Any]) -> None:
    """The life of a client; it ends here."""
    import faulthandler

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    faulthandler.register(signal.SIGUSR1)
    status = 1
    try:
        os.close(0)
        _function(role)(Log(directory, name), **arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _main()
