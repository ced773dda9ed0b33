"""One queue on one server, as all that does its requests sees it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

from ...identity.processes import host
from ..contract.items import Put, Take
from ..contract.session import TICK, Durability, Options
from ..contract.tasks import TakeTasks
from ..shortcut import Shortcut
from . import keys, scripts, signals
from .address import RedisAddress
from .commands import Command, Commands
from .fast_paths import FastPath, Rare
from .host_registry import NoteArguments, NotesOfHost
from .lanes import Lane
from .listening import Listening
from .role_checks import RoleChecks

#: Seconds until a client notices that a reply is lost, when its server fell silent; and for which
#: a request may still be under way to the server after its client gave up connecting again.
_UNNOTICED, _STRAY = 10.0, 5.0

#: The server counts whole milliseconds: so many seconds after its time a wait is over there.
_CLOCK = 0.001
#: Seconds for replicas or the disk to confirm what was done.
CONFIRM_SECONDS = 5.0
#: The calls that take items out for good. What an exception left of one is undone by ``take_back``.
TAKING = frozenset(("poll", "stand_by", "get", "get_many"))
#: The calls that take something which their caller gives back, if nobody has it then.
CLAIMING = frozenset(("take", "prefetch", "reserve", "next"))
#: The calls that tell others that they can go on, after what was done.
NOTIFYING = frozenset(("ring", "wake"))
#: What is done with an item that was taken out: in another lane, so that the call which took it
#: remains the last one of its lane, and can be undone.
REJECTING = frozenset(("reject",))
#: Scripts that move a chunk of a content, for which nothing is copied.
CONTENT_OPERATIONS = ("store", "fetch")


class Server(Protocol):
    """The server on which a queue is, as the engine presents it to its bindings."""

    address: RedisAddress

    @property
    def silence(self) -> float | None:
        """Seconds after which a server that answers nothing is given up; None for never."""

    def slot(self, key: bytes) -> int:
        """Where a key is, for the pools' route."""

    def role_checks(self, name: str, discipline: str) -> RoleChecks:
        """Return the role checks of a queue, for all operations of this process."""

    opens_at_once: bool
    """See :class:`Engine`."""

    notes_of_host: NotesOfHost
    """The queues that were noted for this host."""


class Blocking(NamedTuple):
    """A blocking command, the seconds until its caller looks again, and the seconds until the
    server ends it."""

    command: tuple[Any, ...]
    limit: float
    lasts: float


class RedisBinding:
    """One queue on one server: its key names, and the constant part of each of its commands."""

    def __init__(self, server: Server, name: str, discipline: str, options: Options) -> None:
        self.address = server.address
        self.server = server
        self.name = name
        self.options = options
        self.discipline = discipline
        self.scripts = scripts.load(discipline)
        self.slot = server.slot(self.key("data"))
        self._kept = keys.kept(self.address.prefix, name, discipline)
        self._keep = options.reconnect + _UNNOTICED + _STRAY
        self._durable: set[str] = set()
        if options.durability:
            self._durable = {op for op, script in self.scripts.items() if script.durable}
            self._keep += CONFIRM_SECONDS
        #: The operations that are one exchange over a connection and nothing else, at their best.
        self.quick: set[str] = set()
        if server.silence is None and options.until is None:
            self.quick = set(self.scripts) - self._durable - set(CONTENT_OPERATIONS)
        #: The operations that may share a connection with others: none that is woken by its id,
        #: and none whose connection is waited for afterwards.
        self.shareable = {op for op, script in self.scripts.items() if not script.wants_connection}
        self.shareable -= self._durable | set(CONTENT_OPERATIONS)
        self.shareable |= NOTIFYING
        #: Those that name the connection in which their caller will wait: without one who waits,
        #: they may share one as well.
        self.shareable_at_once = set(self.scripts) - self.shareable - self._durable
        self.shareable_at_once -= set(CONTENT_OPERATIONS)
        self.commands = Commands(self._command)
        #: The fast paths of a put and of a take of one item, of queues that have any.
        self.offer: FastPath | None = None
        self.poll: FastPath | None = None
        if discipline == keys.FIFO:
            self.offer = FastPath("offer")
            self.poll = FastPath("poll", waiting=FastPath("stand_by"))
        #: That of the only reader of a queue with a bound.
        self.drain = FastPath("drain")
        #: That of the only reader of a queue without one.
        self.read_on = Rare()
        #: In event loops, before a request that waits: the same, which only tries, over the shared
        #: connection.
        self.tries: dict[type, Shortcut] = {kind: Shortcut() for kind in (Put, Take, TakeTasks)}
        #: The fast paths of a put and of an acknowledgement of one task.
        self.put_one, self.ack_one = Rare(), Rare()
        #: Whether a queue of tasks keeps those that are processed, as far as is known.
        self.keeps_processed = False
        #: Of the client of an inbox that has just heard a notice on its bell.
        self.listening: Listening | None = None
        self.role_checks = server.role_checks(name, discipline)
        self._signals = signals.of(discipline, scripts.storage(discipline).item)
        #: The operations that give back what was granted in line.
        self.giving_back = {line.undo[0] for line in self._signals.lines.values()}
        self.quick -= self.giving_back | REJECTING | {"take_back"}

    def note_arguments(self, user: str) -> NoteArguments:
        """Return the arguments that note the queue with this host when it is opened."""
        if not self.server.opens_at_once:
            return NoteArguments()
        return self.server.notes_of_host.arguments((self.name, self.discipline), user)

    def durability(self, op: str) -> Durability | None:
        """Who is to confirm the effect of ``op``."""
        return self.options.durability if op in self._durable else None

    def kept(self, lane: bytes) -> bytes:
        """The name of the key that keeps a lane's last reply."""
        return self._kept + lane

    def key(self, part: str) -> bytes:
        """The name of one of the queue's keys."""
        return keys.key(self.address.prefix, self.name, part, self.discipline)

    def number(self, op: str, lane: Lane) -> bytes:
        """The number of a new call; none when it may be done twice, as all may that are no
        scripts."""
        return self.commands[op].number(lane) if op in self.scripts else b""

    def _command(self, op: str) -> Command:
        script = self.scripts[op]
        once = script.once and (self.options.reconnect or op in TAKING)
        names = [self.key(part) for part in script.keys]
        if script.beside:
            beside = keys.beside(self.address.prefix, self.name, self.discipline, host())
            is_near = self.server.opens_at_once  # else they are at another server
            names += [beside[part] if is_near else self.key("bound") for part in script.beside]
        return Command(script, names, self._kept, self._keep if once else None)

    def is_line(self, signal: str) -> bool:
        """Whether to wait for ``signal`` is to wait in line, where something is granted."""
        return signal in self._signals.lines

    def undo(self, signal: str) -> tuple[str, tuple[Any, ...]]:
        """The call that gives back what was granted in line."""
        return self._signals.lines[signal].undo

    def bell(self, ticket: str) -> bytes:
        """The name of the list on which one waiter alone waits."""
        return keys.bell(self.address.prefix, self.name, ticket)

    def waiting(self, signal: str, timeout: float | None, lasts: float = 0.0) -> Blocking:
        """The blocking command for a signal, which the server does not end before it ``lasts`` so
        many seconds.

        The server does not end a wait in line that may last longer than one tick: the place in
        line would be lost.
        """
        limit = TICK if timeout is None else min(timeout, TICK)
        command: tuple[str | bytes, ...]
        if signal in self._signals.lines:
            line = self._signals.lines[signal]
            command = ("BLMOVE", self.key(line.free), self.key(line.granted), "RIGHT", "LEFT")
            if timeout is None or timeout > TICK:
                return Blocking((*command, "0"), limit, math.inf)
        elif signal in self._signals.watches:
            watched = self.key(self._signals.watches[signal])
            command = ("BLMOVE", watched, watched, "RIGHT", "RIGHT")
        else:
            bell = self.bell(signal.removeprefix(signals.BELL))
            command = ("BRPOP", bell)
        if self._signals.keeps_place:
            return Blocking((*command, "0"), limit, math.inf)
        lasts = max(round(max(limit, lasts), 3), 0.001)
        return Blocking((*command, f"{lasts:.3f}"), limit, lasts + _CLOCK)
