"""One queue on one server: its names, its commands, its options; and its fast paths, smaller
scripts that do what a larger one does if that can be done at once, and otherwise nothing."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

from ...identity.processes import host
from ..contract.hosts import QueueKey
from ..contract.items import Put, Take
from ..contract.session import TICK, Durability, Options
from ..contract.tasks import TakeTasks
from ..host_sessions import Pools
from ..lines import Shortcut
from . import keys, scripts, signals
from .address import RedisAddress
from .commands import Command, Commands
from .lanes import Lane
from .listening import Listening
from .role_checks import RoleChecks
from .scripts import FORWARDS
from .statuses import DECLINED, Reply

#: Seconds until a client notices that a reply is lost, when its server fell silent; and seconds for
#: which a request may still be on its way to the server after its client gave up connecting again.
_UNNOTICED, _STRAY = 10.0, 5.0

#: Seconds by which the server ends a wait late: it counts whole milliseconds.
_CLOCK = 0.001
#: Seconds for replicas or the disk to confirm a call.
CONFIRM_SECONDS = 5.0
#: The calls that take items for good. ``take_back`` undoes such a call after an exception.
TAKING = frozenset(("get_at_once", "get_or_wait", "get", "get_many"))
#: The calls whose caller gives back what it took, if it cannot use that.
CLAIMING = frozenset(("take", "prefetch", "reserve", "next"))
#: The calls that wake other clients after another call.
NOTIFYING = frozenset(("ring", "wake"))
#: The calls that set a taken item aside: in another lane, so that the call that took it remains the
#: last one of its lane, and can be undone.
REJECTING = frozenset(("reject",))
#: The scripts that move a chunk of a content, without copying it in this process.
CONTENT_OPERATIONS = ("store", "fetch")


class Rare(Shortcut):
    """A fast path that helps in all of a queue's calls or in none, and is seldom tried in vain."""

    PROBATION = 100

    def is_due(self) -> bool:
        """Tell whether to try it for a call; if not, the call counts as a full one."""
        if not self.is_open:
            self.note(True)
        return self.is_open


class FastPath(Shortcut):
    """A smaller script.

    ``waiting`` is the one for a caller that may wait, which also takes the role to wait with. Its
    arguments are client id, ticket, lease in milliseconds, and the item that came with the wake-up,
    if one did.
    """

    def __init__(self, op: str, waiting: FastPath | None = None) -> None:
        super().__init__()
        self.op = op
        self.waiting = waiting

    def did(self, reply: Reply) -> bool:
        """Tell whether the smaller call did the request; otherwise make the full call."""
        if reply[0] == DECLINED:
            self.close()
            return False
        return True


#: Arguments of the script that opens a queue: the queue, if it is to be noted; and whether the
#: reply is to say what was noted before.
NoteArguments = tuple[str, str]


class NotesOfHost:
    """The queues that were noted before this process opened its first queue, as the reply to that
    call said. A forked child does not ask again, as its parent did."""

    def __init__(self) -> None:
        self._found: list[bytes] | None = None
        self._is_known = False  # or not needed any more

    def arguments(self, queue: QueueKey, user: str) -> NoteArguments:
        """Return the arguments with which to open a queue, which is anonymous if it has a
        ``user``."""
        return as_noted(queue) if user else "", "0" if self._is_known else "1"

    def hear(self, arguments: NoteArguments, found: list[bytes]) -> None:
        """Keep what the reply to an opening with these arguments says."""
        if arguments[1] == "1" and not self._is_known:
            self._found, self._is_known = found, True

    def take(self) -> list[bytes] | None:
        """Return the queues that were noted, once. After None the caller asks the server itself,
        and no later opening asks."""
        found, self._found, self._is_known = self._found, None, True
        return found


def as_noted(queue: QueueKey) -> str:
    """Return the member of the host's set that stands for a queue."""
    name, discipline = queue
    return f"{discipline} {name}"


class Server(Pools, Protocol):
    """The server on which a queue is, as the engine presents it to its bindings."""

    address: RedisAddress

    def slot(self, key: bytes) -> int:
        """Return the slot of a key, for the pools' route."""

    def role_checks(self, name: str, discipline: str) -> RoleChecks:
        """Return the role checks of a queue, for all operations of this process."""

    opens_at_once: bool
    """See :class:`Engine`."""

    notes_of_host: NotesOfHost
    """The queues that were noted for this host."""

    def lanes(self) -> list[bytes]:
        """List the ids of the lanes of all connections of this process, also of some that are
        closed."""


class Blocking(NamedTuple):
    """A blocking command, the seconds until its caller checks the queue again, and the seconds
    until the server ends it."""

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
            self._durable |= set(FORWARDS)
            self._keep += CONFIRM_SECONDS
        #: The operations that can be one exchange over a connection.
        self.quick: set[str] = set()
        if server.thread_pool.silence is None and options.until is None:
            self.quick = {*self.scripts, *FORWARDS} - self._durable - set(CONTENT_OPERATIONS)
        #: The operations that may share a connection: none that is woken by the id of its
        #: connection, and none after which the connection waits.
        self.shareable = {op for op, script in self.scripts.items() if not script.wants_connection}
        if not self.scripts["put"].wants_connection:
            self.shareable |= set(FORWARDS)
        self.shareable -= self._durable | set(CONTENT_OPERATIONS)
        self.shareable |= NOTIFYING
        #: The operations that name the connection on which their caller will wait: they may share a
        #: connection if the caller does not wait.
        self.shareable_at_once = {*self.scripts, *FORWARDS} - self.shareable - self._durable
        self.shareable_at_once -= set(CONTENT_OPERATIONS)
        self.commands = Commands(self._command)
        #: The fast paths of a put and of a take of one item, if the discipline has these.
        self.put_at_once: FastPath | None = None
        self.get_at_once: FastPath | None = None
        if discipline == keys.FIFO:
            self.put_at_once = FastPath("put_at_once")
            self.get_at_once = FastPath("get_at_once", waiting=FastPath("get_or_wait"))
        #: The fast path of the only reader of a queue without a bound.
        self.reserve_unbounded = Rare()
        #: In event loops, before a request that waits: the same request without waiting, over the
        #: shared connection.
        self.tries: dict[type, Shortcut] = {kind: Shortcut() for kind in (Put, Take, TakeTasks)}
        #: The fast paths of a put and of an acknowledgement of one task.
        self.put_one, self.ack_one = Rare(), Rare()
        #: Whether a queue of tasks is known to keep processed tasks.
        self.keeps_processed = False
        #: The state of the client of an inbox that has just received a notice on its bell.
        self.listening: Listening | None = None
        self.role_checks = server.role_checks(name, discipline)
        self._signals = signals.of(discipline, scripts.storage(discipline).item)
        #: The operations that give back a token that was granted in line.
        self.giving_back = {line.undo[0] for line in self._signals.lines.values()}
        self.quick -= self.giving_back | REJECTING | {"take_back"}

    def note_arguments(self, user: str) -> NoteArguments:
        """Return the arguments that note the queue with this host when it is opened."""
        if not self.server.opens_at_once:
            return "", ""  # the script cannot do it
        return self.server.notes_of_host.arguments((self.name, self.discipline), user)

    def durability(self, op: str) -> Durability | None:
        """Return the durability that the effect of ``op`` needs."""
        return self.options.durability if op in self._durable else None

    def kept(self, lane: bytes) -> bytes:
        """Return the name of the key that keeps a lane's last reply."""
        return self._kept + lane

    def key(self, part: str) -> bytes:
        """Return the name of one of the queue's keys."""
        return keys.key(self.address.prefix, self.name, part, self.discipline)

    def number(self, op: str, lane: Lane) -> bytes:
        """Make the number of a new call; empty when it may be done twice, as all calls may that are
        not scripts."""
        is_script = op in self.scripts or op in FORWARDS
        return self.commands[op].number(lane) if is_script else b""

    def _command(self, op: str) -> Command:
        script = self.scripts[op]
        once = script.once and (self.options.reconnect or op in TAKING)
        names = [self.key(part) for part in script.keys]
        if script.beside:
            beside = keys.beside(self.address.prefix, self.name, self.discipline, host())
            is_near = self.server.opens_at_once  # otherwise they are at another server
            names += [beside[part] if is_near else self.key("bound") for part in script.beside]
        return Command(script, names, self._kept, self._keep if once else None)

    def is_line(self, signal: str) -> bool:
        """Tell whether a wait for ``signal`` is in line, for a token that the server grants."""
        return signal in self._signals.lines

    def undo(self, signal: str) -> tuple[str, tuple[Any, ...]]:
        """Return the call that gives back a token that was granted in line."""
        return self._signals.lines[signal].undo

    def bell(self, ticket: str) -> bytes:
        """Return the name of the list on which only one waiter waits."""
        return keys.bell(self.address.prefix, self.name, ticket)

    def waiting(self, signal: str, timeout: float | None, lasts: float = 0.0) -> Blocking:
        """Make the blocking command for a signal, which the server ends after ``lasts`` seconds at
        the earliest.

        Without an end for a wait in line that may last longer than one tick: its end would lose the
        place in line.
        """
        limit = TICK if timeout is None else min(timeout, TICK)
        command: tuple[str | bytes, ...]
        if signal in self._signals.lines:
            line = self._signals.lines[signal]
            command = ("BLMOVE", self.key(line.free), self.key(line.granted), "RIGHT", "LEFT")
            if timeout is None or timeout > TICK:
                return Blocking((*command, "0"), limit, math.inf)
        elif signal in self._signals.signs:
            sign = self.key(self._signals.signs[signal])
            command = ("BLMOVE", sign, sign, "RIGHT", "RIGHT")
        else:
            bell = self.bell(signal.removeprefix(signals.BELL))
            command = ("BRPOP", bell)
        if self._signals.keeps_place:
            return Blocking((*command, "0"), limit, math.inf)
        lasts = max(round(max(limit, lasts), 3), 0.001)
        return Blocking((*command, f"{lasts:.3f}"), limit, lasts + _CLOCK)
