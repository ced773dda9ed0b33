"""The processes of a history, as their conductor holds them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener, wait
from pathlib import Path
from typing import Any, Protocol

import psutil
import started
from waiting import has_ended

from process_histories import acting

#: Seconds after which a call without a time limit hangs, and a process does not begin or end.
HANG = 60.0

#: What lines say that a history may bring: a broker is away, or a process ends with items of a
#: JoinableQueue, and never called ``task_done()``.
_EXPECTED = (
    "trying for another",
    "clients that wait receive no notifications",
    "are delivered again to other consumers",
)


class Broken(AssertionError):
    """No queue does that."""


class First:
    """Starts the first process of each history."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore::DeprecationWarning", acting.__file__],
            stdin=subprocess.PIPE,
            text=True,
            env=started.environment(),
        )

    def start(self, errors: str, address: str, name: str) -> None:
        assert self._process.stdin is not None
        print(errors, address, name, file=self._process.stdin, flush=True)

    def __enter__(self) -> First:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(eq=False)
class Process:
    seen: psutil.Process
    parent: Process | None
    #: The queues that it keeps alive: from its first operation on, or, if it was forked, its begin.
    uses: set[str]
    #: Whether it was forked from a process that had started a forkserver: it cannot use that.
    has_foreign_forkserver: bool
    has_forkserver: bool = False
    actors: list[Actor] = field(default_factory=list)
    is_stopped: bool = False
    is_alive: bool = True

    @property
    def has_any_forkserver(self) -> bool:
        return self.has_forkserver or self.has_foreign_forkserver


@dataclass(eq=False)
class Actor:
    """A thread that makes calls; the first of a process is its main thread."""

    name: str
    connection: Connection
    process: Process
    #: How many handles it has to each queue.
    handles: dict[str, int]
    #: The call that it is in: the verb, its queue, and how many items it may get.
    call: tuple[str, str, int] | None = None
    is_alive: bool = True
    #: What its last call got.
    last_got: list[str] = field(default_factory=list)

    @property
    def is_idle(self) -> bool:
        return self.is_alive and self.call is None and not self.process.is_stopped

    @property
    def is_main(self) -> bool:
        return self is self.process.actors[0]

    @property
    def is_busy(self) -> bool:
        return self.is_alive and self.call is not None


class Listening(Protocol):
    """Hears what actors tell."""

    def note(self, actor: Actor, queue: str, told: list[tuple[str, str, int, int, str]]) -> None:
        """Operations that have ended."""

    def forgives(self, actor: Actor, queue: str, error: str) -> bool:
        """Whether a call may raise that."""


class Actors:
    """All actors of one history, by name."""

    def __init__(self, listening: Listening) -> None:
        self._listening = listening
        self._folder = tempfile.TemporaryDirectory(prefix="pmp-h-")
        self._errors = Path(self._folder.name) / "errors"
        self._listener = Listener(str(Path(self._folder.name) / "s"), backlog=16)
        self._answer: Any = None
        self.of: dict[str, Actor] = {}
        self.processes: list[Process] = []

    def __iter__(self) -> Iterator[Actor]:
        return iter(list(self.of.values()))

    def start(self, first: First, name: str) -> None:
        """The first actor begins."""
        first.start(str(self._errors), str(self._listener.address), name)
        self.accept(None, "fork")

    def accept(self, parent: Actor | None, way: str) -> None:
        """Another actor has begun, which has the handles of its parent."""
        listening = self._listener._listener._socket  # type: ignore[attr-defined]
        if not wait([listening], HANG):
            raise Broken("a process does not begin")
        connection = self._listener.accept()
        name, pid = connection.recv()
        process = parent.process if parent is not None else None
        if process is None or process.seen.pid != pid:
            is_forked = process is not None and way == "fork"
            uses = set(process.uses) if process is not None and is_forked else set()
            has_server = process is not None and is_forked and process.has_any_forkserver
            process = Process(psutil.Process(pid), process, uses, has_server)
            self.processes.append(process)
        actor = Actor(name, connection, process, dict(parent.handles) if parent else {})
        process.actors.append(actor)
        self.of[name] = actor

    def ask(self, actor: Actor, verb: str, *arguments: Any, number: int = 0) -> Any:
        """Have an actor make a call, and wait for it; None if it raised what may be."""
        self.begin(actor, verb, *arguments, number=number)
        if not self.collect(actor, HANG):
            self.show_stacks([actor])
            raise Broken(f"{actor.name} hangs in {verb} {arguments}")
        return self._answer

    def begin(self, actor: Actor, verb: str, *arguments: Any, number: int = 0) -> None:
        """Have an actor make a call, which may get so many items."""
        actor.call = (verb, str(arguments[0]) if arguments else "", number)
        actor.last_got = []
        actor.connection.send((verb, arguments))

    def collect(self, actor: Actor, limit: float) -> bool:
        """Read what an actor tells, until its call has ended; whether it has."""
        deadline = time.monotonic() + limit
        while actor.call is not None:
            if not actor.connection.poll(max(0.0, deadline - time.monotonic())):
                return False
            try:
                what, told = actor.connection.recv()
            except (EOFError, ConnectionResetError):
                raise Broken(f"{actor.name} died in {actor.call}") from None
            self._hear(actor, what, told)
        return True

    def collect_all(self) -> None:
        """Read what all have told until now."""
        for actor in self:
            if actor.is_busy and not actor.process.is_stopped:
                self.collect(actor, 0)

    def _hear(self, actor: Actor, what: str, told: Any) -> None:
        assert actor.call is not None
        verb, queue, _ = actor.call
        if what == "operations":
            self._listening.note(actor, queue, told)
            return
        actor.call, self._answer = None, told
        if queue and verb not in ("start", "pickled", "adopt", "close"):
            actor.process.uses.add(queue)
        if what == "error":
            said, trace = told
            self._answer = None
            if not self._listening.forgives(actor, queue, said):
                raise Broken(f"{actor.name} {verb}: {said}\n{trace}")

    # How they are.

    @property
    def stopped(self) -> list[Process]:
        return [one for one in self.processes if one.is_stopped and one.is_alive]

    @property
    def are_in_turmoil(self) -> bool:
        """Whether one is stopped in the midst of a call: it may have the locks."""
        return any(actor.is_busy for process in self.stopped for actor in process.actors)

    @property
    def are_quiet(self) -> bool:
        return not self.stopped and not any(actor.is_busy for actor in self)

    def keepers(self, queue: str, without: Process | Actor) -> Iterator[Actor]:
        """The actors of :meth:`idle` whose process keeps the queue alive."""
        return (one for one in self.idle(queue, without) if queue in one.process.uses)

    @property
    def working(self) -> set[str]:
        """The names of the actors that can send the items that they put."""
        return {one.name for one in self if one.is_alive and not one.process.is_stopped}

    def idle(self, queue: str = "", without: Process | Actor | None = None) -> Iterator[Actor]:
        """The actors that can be asked, and have a handle to the queue."""
        for actor in self:
            has = not queue or actor.handles.get(queue)
            if actor.is_idle and has and without not in (actor, actor.process):
                yield actor

    # Their ends.

    def end(self, actor: Actor) -> None:
        """A main thread ends with its process, which has no others."""
        actor.connection.send(("end", ()))
        actor.is_alive = False
        if not actor.is_main:
            return
        deadline = time.monotonic() + HANG
        while not has_ended(actor.process.seen):
            if time.monotonic() > deadline:
                self.show_stacks([actor])
                raise Broken(f"the process of {actor.name} does not end")
            time.sleep(0.002)
        actor.process.is_alive = False

    def kill(self, process: Process) -> list[Actor]:
        """Send SIGKILL, and read what its actors told before. The actors that were alive."""
        process.seen.kill()
        while not has_ended(process.seen):
            time.sleep(0.001)
        process.is_alive = False
        killed = [actor for actor in process.actors if actor.is_alive]
        for actor in killed:
            with contextlib.suppress(EOFError, ConnectionResetError):
                while actor.connection.poll(0):
                    self._hear(actor, *actor.connection.recv())
            actor.is_alive = False
        return killed

    def close(self) -> None:
        """None is left."""
        for process in self.processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.seen.kill()
        for actor in self:
            actor.connection.close()
        self._listener.close()
        self._folder.cleanup()

    def show_stacks(self, actors: list[Actor]) -> None:
        """Have their processes write where their threads are."""
        for process in {actor.process for actor in actors}:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.seen.send_signal(signal.SIGUSR1)
        time.sleep(0.3)

    @property
    def errors(self) -> str:
        """What processes wrote, apart from what they are to write."""
        lines = self._errors.read_text().splitlines() if self._errors.exists() else []
        return "\n".join(
            line for line in lines if not any(expected in line for expected in _EXPECTED)
        )
