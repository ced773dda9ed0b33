"""A cluster for several processes: one has it, and the others reach it by a socket.

A message is a number, what to call, and arguments; the answer has the number of the message. Reads
are answered at once, each over a connection of its thread. Later answers go over one connection of
the process.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from simulated_fdb import addresses
from simulated_fdb.cluster import Cluster, Commit, Reply
from simulated_fdb.errors import Failed, Unreachable
from simulated_fdb.free import Free

_READS = ("read_version", "get", "get_range")
_GONE = (EOFError, OSError)


@contextmanager
def served(cluster: Cluster, path: str) -> Iterator[None]:
    """Write a cluster file, by which this process and others reach the cluster until the end of the
    block."""
    socket = f"{path}.socket"
    with Listener(socket, "AF_UNIX") as listener:
        threading.Thread(target=_accept, args=(listener, cluster), daemon=True).start()
        with open(path, "w") as file:
            file.write(socket)
        addresses.here[path] = cluster
        try:
            yield
        finally:
            del addresses.here[path]
            os.remove(path)
            with suppress(OSError):
                Client(socket, "AF_UNIX").close()  # so that the thread looks


def _accept(listener: Listener, cluster: Cluster) -> None:
    with suppress(OSError):
        while True:
            connection = listener.accept()
            threading.Thread(target=_serve, args=(connection, cluster), daemon=True).start()


def _serve(connection: Connection, cluster: Cluster) -> None:
    """Answer one connection, until its process is gone."""
    lock = threading.Lock()
    watches: dict[int, Any] = {}

    def answer(number: int, outcome: Any = None) -> None:
        with lock, suppress(OSError):
            connection.send((number, outcome))

    with connection, suppress(*_GONE):
        while True:
            number, call, arguments = connection.recv()
            if call in _READS:
                answer(number, _outcome(getattr(cluster, call), arguments))
            elif call == "send":
                cluster.send(*arguments, lambda outcome, number=number: answer(number, outcome))
            elif call == "watch":
                watches[number] = cluster.watch(
                    *arguments, lambda error, number=number: answer(number, error)
                )
            elif call == "unwatch":
                cluster.unwatch(watches.pop(number))
            else:
                cluster.when_reachable(lambda number=number: answer(number))
    for watch in watches.values():
        cluster.unwatch(watch)


def _outcome(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return call(*arguments)
    except (Failed, Unreachable) as error:
        return error


class Remote:
    """A cluster that another process has."""

    def __init__(self, socket: str) -> None:
        self.driver = Free()
        self._socket = socket
        self._threads = threading.local()
        self._numbers = itertools.count()
        self._called: dict[int, Callable[[Any], None]] = {}
        self._lock = threading.Lock()
        self._events: Connection | None = None

    def read_version(self) -> int:
        return self._read("read_version")

    def get(self, key: bytes, version: int) -> bytes | None:
        return self._read("get", key, version)

    def get_range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool, version: int
    ) -> list[tuple[bytes, bytes]]:
        return self._read("get_range", begin, end, limit, reverse, version)

    def send(self, commit: Commit, reply: Reply) -> None:
        self._call("send", (commit,), reply)

    def watch(self, key: bytes, value: bytes | None, fire: Callable[[int], None]) -> int:
        return self._call("watch", (key, value), fire)

    def unwatch(self, watch: int) -> None:
        with self._lock:
            if self._called.pop(watch, None) is not None and self._events is not None:
                with suppress(OSError):
                    self._events.send((watch, "unwatch", ()))

    def when_reachable(self, job: Callable[[], None]) -> None:
        self._call("when_reachable", (), lambda outcome: job())

    def _read(self, call: str, *arguments: Any) -> Any:
        try:
            if not hasattr(self._threads, "connection"):
                self._threads.connection = Client(self._socket, "AF_UNIX")
            self._threads.connection.send((0, call, arguments))
            _, outcome = self._threads.connection.recv()
        except _GONE:
            raise Unreachable from None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _call(self, call: str, arguments: tuple[Any, ...], reply: Callable[[Any], None]) -> int:
        """Have ``reply`` called with the answer: never, if the other process is gone."""
        with self._lock, suppress(OSError):
            number = next(self._numbers)
            self._called[number] = reply
            if self._events is None:
                self._events = Client(self._socket, "AF_UNIX")
                threading.Thread(target=self._hear, args=(self._events,), daemon=True).start()
            self._events.send((number, call, arguments))
        return number

    def _hear(self, events: Connection) -> None:
        with suppress(*_GONE):
            while True:
                number, outcome = events.recv()
                reply = self._called.pop(number, None)
                if reply is not None:
                    reply(outcome)
