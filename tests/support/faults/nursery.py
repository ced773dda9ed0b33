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

from faults import clients, forwarding, tasks, transactions
from faults.histories import Log


@dataclass
class Client:
    """A process that runs a function of ``faults.clients`` or ``faults.tasks``."""

    name: str
    role: str
    #: Which one of the nursery's it is. Its process's number may be another one's later.
    number: int
    pid: int
    errors: Path
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
    """Starts clients that log to ``directory``, which may be changed for later clients; in the
    end it leaves no client behind."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clients: list[Client] = []
        #: How each that has ended did so, as ``os.waitstatus_to_exitcode`` has it.
        self._ended: dict[int, int] = {}
        self._started: list[int] = []
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=started.environment(),
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, *numbers = line.split()
            if what == "started":
                self._started.append(int(numbers[0]))
            else:
                number, status = map(int, numbers)
                self._ended[number] = status

    def start(self, role: str, **arguments: Any) -> Client:
        """A new client; ``role`` names the function."""
        number = len(self.clients)
        name = f"{role}{number}"
        errors = self.directory / f"{name}.errors"
        errors.touch()
        assert self._process.stdin is not None
        json.dump([str(errors), role, name, arguments], self._process.stdin)
        print(file=self._process.stdin, flush=True)
        until(lambda: len(self._started) > number)
        client = Client(name, role, number, self._started[number], errors)
        self.clients.append(client)
        return client

    def has_ended(self, client: Client) -> bool:
        return client.number in self._ended

    def running(self, role: str) -> list[Client]:
        """The clients of a role that work: not killed, not stopped, not at their end."""
        return [
            client
            for client in self.clients
            if client.role == role
            and not (client.killed or client.stopped or self.has_ended(client))
        ]

    def wait(self, limit: float) -> None:
        """Wait until all clients have ended; clients that were not killed must have ended well."""
        deadline = time.monotonic() + limit
        until(
            lambda: all(map(self.has_ended, self.clients)) or time.monotonic() > deadline, limit + 5
        )
        stuck = [client for client in self.clients if not self.has_ended(client)]
        assert not stuck, f"after {limit} s they still run: {stuck}\n{self._where(stuck)}"
        self.check()

    def check(self) -> None:
        """No client ended with an error so far, but for killed ones."""
        failed = [
            client
            for client in self.clients
            if self._ended.get(client.number, 0) and not client.killed
        ]
        assert not failed, "\n".join(map(self._end_of, failed))

    def _end_of(self, client: Client) -> str:
        """How it ended, and what it wrote."""
        status = self._ended[client.number]
        by = signal.Signals(-status).name if status < 0 else f"status {status}"
        return f"{client} ended by {by}:\n{client.errors.read_text()[-5000:]}"

    def _where(self, stuck: list[Client]) -> str:
        for client in stuck:
            client.send(signal.SIGUSR1)  # makes it write down where it is
        time.sleep(0.5)
        return "\n".join(f"{one.name}:\n{one.errors.read_text()[-5000:]}" for one in stuck)

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
        self._process.stdin.close()  # then it kills the clients that are left
        self._process.wait(LIMIT)
        self._reading.join(10)
        self._process.stdout.close()


def _main() -> None:
    """Fork a client for each line; tell of each one that starts, or ends."""
    children: dict[int, int] = {}

    def bury(*_: object) -> None:
        for pid, status in _dead():
            number = children.pop(pid)
            os.write(1, b"ended %d %d\n" % (number, os.waitstatus_to_exitcode(status)))

    signal.signal(signal.SIGCHLD, bury)
    for number, line in enumerate(sys.stdin):
        errors, role, name, arguments = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid == 0:
            _live(Path(errors), role, name, arguments)
        children[pid] = number
        os.write(1, b"started %d\n" % pid)
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
        getattr(module, role)
        for module in (clients, forwarding, tasks, transactions)
        if hasattr(module, role)
    )
    return found


def _live(errors: Path, role: str, name: str, arguments: dict[str, Any]) -> None:
    """The life of a client; it ends here. It logs beside its ``errors``."""
    import faulthandler

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    faulthandler.register(signal.SIGUSR1)
    status = 1
    try:
        os.close(0)
        written = os.open(errors, os.O_WRONLY | os.O_APPEND)
        os.dup2(written, 2)
        os.close(written)
        _function(role)(Log(errors.parent, name), **arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _main()
