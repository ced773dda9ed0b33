"""What a process of a history does: it makes the calls that the conductor sends, one at a time, and
tells of each operation as it ends.

A thread of such a process can be one more actor, with a connection of its own. Run as a program,
this file starts the first process of each history: it has loaded what takes long, and has used no
queue.
"""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import os
import pickle
import pkgutil
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Connection
from typing import Any

import pressure_mp
from pressure_mp import Empty, Full, LateTaskDoneWarning, QueueInUseError, ShutDown

#: What a size means in bytes. A large item moves an anonymous queue from memory to the broker.
SIZES = {"small": 0, "medium": 20_000, "large": 300_000}

#: The connections of this process's actors: a forked child closes them.
_connections: list[Connection] = []


def content(item: str, size: str) -> tuple[str, bytes]:
    """The content that is put for an item: its name, and bytes that no other item has."""
    return item, (item.encode() * (SIZES[size] // len(item) + 1))[: SIZES[size]]


def _name_of(got: tuple[str, bytes]) -> str:
    name, data = got
    whole = (name.encode() * (len(data) // len(name) + 1))[: len(data)]
    assert data == whole, f"{name} came with other bytes"
    assert len(data) in SIZES.values(), f"{name} came with {len(data)} bytes"
    return name


class Actor:
    """Its calls use the latest handle that it inherited, was given, made or adopted."""

    def __init__(self, address: str, name: str, handles: dict[str, list[Any]]) -> None:
        self.address = address
        self.handles = handles
        #: What it got and has not acknowledged, by queue: the item's name, and the item or task.
        self.held: dict[str, list[tuple[str, Any]]] = {}
        self.closed: dict[str, list[Any]] = {}
        self.connection = Client(address)
        _connections.append(self.connection)
        self.connection.send((name, os.getpid()))

    def act(self) -> None:
        """Make calls until there are no more."""
        while True:
            try:
                verb, arguments = self.connection.recv()
            except (EOFError, ConnectionResetError):
                os._exit(0)  # the conductor has ended
            if verb == "end":
                break
            try:
                self.connection.send(("end", getattr(self, verb)(*arguments)))
            except Exception as error:
                self.connection.send(("error", (describe(error), traceback.format_exc())))
        self.connection.close()

    @contextmanager
    def _operation(self, kind: str, items: Sequence[str] = ("",)) -> Iterator[list[str]]:
        """One operation: when it ends, tell its items with the outcome; it may set which items they
        were."""
        found = list(items)
        outcome, begin = "done", time.monotonic_ns()
        try:
            yield found
        except (Empty, Full, ShutDown) as error:
            outcome = _outcome(error)
            accepted = getattr(error, "accepted", 0)
            self._tell(kind, found[:accepted], begin, "done")
            del found[:accepted]
        except LateTaskDoneWarning:
            outcome = "fenced"
        self._tell(kind, found, begin, outcome)

    def _tell(self, kind: str, items: Sequence[str], begin: int, outcome: str) -> None:
        end = time.monotonic_ns()
        self.connection.send(("operations", [(kind, item, begin, end, outcome) for item in items]))

    # The steps that conductors ask for, by their names.

    def make(self, queue: str, kind: str, options: dict[str, Any]) -> str:
        """The name that the broker knows it by."""
        made = getattr(pressure_mp, kind)(**options)
        self.handles[queue] = [made]
        made.exists()
        return str(made.name)

    def put(self, queue: str, items: Sequence[str], size: str, timeout: float | None) -> None:
        handle = self.handles[queue][-1]
        for item in items:
            with self._operation("put", [item]):
                if isinstance(handle, pressure_mp.TaskQueue):
                    handle.put(content(item, size))
                else:
                    handle.put(content(item, size), True, timeout)

    def offer(self, queue: str, items: Sequence[str], size: str) -> None:
        with self._operation("put", items):
            self.handles[queue][-1].put_nowait(content(items[0], size))

    def batch(self, queue: str, items: Sequence[str], size: str, timeout: float | None) -> None:
        handle = self.handles[queue][-1]
        with self._operation("put", items):
            given = [content(item, size) for item in items]
            if isinstance(handle, pressure_mp.TaskQueue):
                handle.put_many(given)
            else:
                handle.put_many(given, True, timeout)

    def get(self, queue: str, number: int, timeout: float | None) -> None:
        handle = self.handles[queue][-1]
        for _ in range(number):
            with self._operation("get") as found:
                if isinstance(handle, pressure_mp.TaskQueue):
                    got = handle.take(timeout)
                    found[0] = _name_of(got.data)
                else:
                    got = handle.get(True, timeout)
                    found[0] = _name_of(got)
                self.held.setdefault(queue, []).append((found[0], got))
            if not found[0]:
                return

    def fetch(self, queue: str, number: int, timeout: float | None) -> None:
        handle = self.handles[queue][-1]
        with self._operation("get") as found:
            if isinstance(handle, pressure_mp.TaskQueue):
                tasks = handle.take_many(number, timeout)
                got = [(_name_of(task.data), task) for task in tasks]
            else:
                got = [(_name_of(one), one) for one in handle.get_many(number, True, timeout)]
            self.held.setdefault(queue, []).extend(got)
            found[:] = [name for name, _ in got]

    def done(self, queue: str, number: int) -> None:
        """Acknowledge the first items that this actor got; a closed handle can do that too."""
        handle = (self.handles[queue] or self.closed[queue])[-1]
        held = self.held.setdefault(queue, [])
        for name, got in [held.pop(0) for _ in range(min(number, len(held)))]:
            with self._operation("task_done", [name]), warnings.catch_warnings():
                warnings.simplefilter("error", LateTaskDoneWarning)
                if isinstance(handle, pressure_mp.TaskQueue):
                    try:
                        handle.ack(got)
                    except pressure_mp.TaskError:
                        raise LateTaskDoneWarning from None
                else:
                    handle.task_done()

    def work(self, queue: str, number: int, timeout: float | None) -> None:
        """Get items, and acknowledge each."""
        for _ in range(number):
            self.get(queue, 1, timeout)
            self.done(queue, 1)

    def flush(self) -> None:
        for handles in self.handles.values():
            for handle in handles:
                if hasattr(handle, "flush"):
                    handle.flush()

    def count(self, queue: str) -> dict[str, Any]:
        handle = self.handles[queue][-1]
        if isinstance(handle, (pressure_mp.TaskQueue, pressure_mp.SimpleQueue)):
            return {"qsize": handle.qsize()}
        found = {"qsize": handle.qsize(), "empty": handle.empty(), "full": handle.full()}
        if isinstance(handle, pressure_mp.JoinableQueue):
            found["unfinished"] = handle.unfinished_tasks
        return found

    def bound(self, queue: str, bound: int) -> bool:
        self.handles[queue][-1].maxsize = bound
        return True

    def read_bound(self, queue: str) -> int:
        return int(self.handles[queue][-1].maxsize)

    def shutdown(self, queue: str, immediate: bool) -> None:
        with self._operation("shutdown"):
            self.handles[queue][-1].shutdown(immediate)

    def join(self, queue: str) -> None:
        self.handles[queue][-1].join()

    def close(self, queue: str) -> None:
        handle = self.handles[queue].pop()
        handle.close()
        self.closed.setdefault(queue, []).append(handle)

    def pickled(self, queue: str) -> bytes:
        return pickle.dumps(self.handles[queue][-1])

    def adopt(self, queue: str, data: bytes) -> None:
        self.handles.setdefault(queue, []).append(pickle.loads(data))

    def start(self, way: str, name: str) -> None:
        """Start another actor, which has all handles of this one."""
        own = {queue: list(handles) for queue, handles in self.handles.items() if handles}
        if way == "thread":
            target: Callable[..., None] = live
            threading.Thread(target=target, args=(self.address, name, own), name=name).start()
            return
        context: Any = multiprocessing.get_context(way)
        context.Process(target=live_in_process, args=(self.address, name, own), name=name).start()


def _outcome(error: Exception) -> str:
    if isinstance(error, QueueInUseError):
        return "busy"
    if isinstance(error, ShutDown):
        return "closed"
    return "full" if isinstance(error, Full) else "empty"


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def live(address: str, name: str, handles: dict[str, list[Any]]) -> None:
    """The life of an actor."""
    Actor(address, name, handles).act()


def live_in_process(address: str, name: str, handles: dict[str, list[Any]]) -> None:
    """The same in a process of its own."""
    faulthandler.register(signal.SIGUSR1)
    while _connections:
        _connections.pop().close()
    live(address, name, handles)


def _live_as_first(errors: str, address: str, name: str) -> None:
    written = os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(written, 2)
    os.close(written)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    live_in_process(address, name, {})


#: Packages whose modules take long to load, and are loaded once.
_LOADED = ("background", "buffering", "encoding", "engines", "operations", "sync")


def _load() -> None:
    for found in pkgutil.walk_packages(pressure_mp.__path__, "pressure_mp."):
        if found.name.split(".")[1] in _LOADED:
            with suppress(ImportError):  # of a driver that is not installed
                importlib.import_module(found.name)


def _main() -> None:
    """Start a process for each line: its file of errors, the conductor's address, a name."""
    from process_histories import acting

    _load()
    multiprocessing.set_forkserver_preload([acting.__name__])
    forking = multiprocessing.get_context("fork")
    for line in sys.stdin:
        multiprocessing.active_children()  # it waits for children that have ended
        target = acting._live_as_first
        forking.Process(target=target, args=tuple(line.split())).start()


if __name__ == "__main__":
    _main()
