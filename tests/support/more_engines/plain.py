"""A first engine, in this process's memory: it has the level ITEMS, and so much is what that takes.

It is a module of ``pressure_mp.engines`` while ``brokers/plain.py`` makes it one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..encoding.large import is_manifest, token_of, weight
from ..identity.client import client_id
from ..urls import Url
from .contract.address import Capabilities, SimpleAddress
from .contract.contents import ReadChunks, StoreChunks, SweepContents
from .contract.default_replies import default_reply
from .contract.hosts import Forget, GetRemembered, Leave, QueueKey, Remember
from .contract.implementations import Implementations
from .contract.items import Added, Put, SetAside, Take, TakeBack, Taken
from .contract.levels import Level
from .contract.queues import (
    Close,
    Delete,
    Dismiss,
    Enlist,
    Existing,
    Exists,
    GetDiscipline,
    GetLength,
    GetStats,
    GetUsers,
    How,
    IsClosed,
    Mismatch,
    Open,
    Opened,
    SetBound,
    Stats,
)
from .contract.replies import Later, NoItem, NoSpace, Outcome
from .contract.session import DEFAULTS, TICK, Options, SessionDefaults

#: Seconds between two looks of a task that waits.
PAUSE = 0.005


#: The queues of this process under one name and prefix.
PlainAddress = partial(
    SimpleAddress,
    "plain",
    Capabilities(persistent=False, durable=False, private=True, levels=frozenset({Level.ITEMS})),
)


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> SimpleAddress:
    return PlainAddress(url.place, prefix)


class PlainEngine:
    """The queues of one address."""

    opens_at_once = False

    def __init__(self, address: SimpleAddress) -> None:
        self.address = address
        self.after_fork()

    def after_fork(self) -> None:
        self._queues: defaultdict[str, PlainQueue] = defaultdict(PlainQueue)
        self._hosts: defaultdict[str, PlainHost] = defaultdict(lambda: PlainHost(self._queues))

    def bind(self, name: str, discipline: str, options: Options = DEFAULTS) -> PlainBinding:
        return PlainBinding(self._queues[name], discipline)

    def rival(self, name: str, discipline: str, options: Options = DEFAULTS) -> None:
        return None

    def broker(self, options: Options = DEFAULTS) -> PlainBinding:
        return PlainBinding(PlainBroker(), "")

    def host(self, name: str, options: Options = DEFAULTS) -> PlainBinding:
        return PlainBinding(self._hosts[name], "")

    def close(self, kept: int = 0) -> None:
        """There are no connections."""


@dataclass(frozen=True)
class PlainBinding:
    """A queue, the notes of a host, or the broker."""

    queue: Any
    discipline: str

    def session(self) -> PlainSession:
        return PlainSession(self.queue, self.discipline)

    def asession(self) -> AsyncPlainSession:
        return AsyncPlainSession(self.queue, self.discipline)


class _Session(SessionDefaults):
    """The caller of a queue; ``seen`` is how often the queue had changed at its last call."""

    seen = 0

    def __init__(self, queue: Any, discipline: str) -> None:
        self._queue = queue
        self.discipline = discipline


class PlainSession(_Session):
    """An operation of a thread."""

    def call(self, request: Any, end: float | None = None) -> Any:
        return self._queue.call(request, self)

    def wait(self, later: Later, timeout: float | None) -> bool:
        limit = TICK if timeout is None else min(timeout, TICK)
        with self._queue.changed:
            return self._queue.changed.wait_for(lambda: self._queue.changes != self.seen, limit)

    def end(self) -> None:
        self._queue.leave(self)


class AsyncPlainSession(_Session):
    """An operation of a task."""

    async def call(self, request: Any, end: float | None = None) -> Any:
        return self._queue.call(request, self)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        until = time.monotonic() + (TICK if timeout is None else min(timeout, TICK))
        while self._queue.changes == self.seen and time.monotonic() < until:
            await asyncio.sleep(PAUSE)
        return self._queue.changes != self.seen

    async def end(self) -> None:
        self._queue.leave(self)


class PlainBroker:
    """It does nothing but what the contract does for it."""

    def call(self, request: Any, caller: _Session) -> Any:
        return default_reply(request)

    def leave(self, caller: _Session) -> None:
        """No call waits here."""


@dataclass
class State:
    """A queue that exists."""

    bound: int
    discipline: str
    items: deque[bytes] = field(default_factory=deque)
    closed: bool = False
    users: set[str] = field(default_factory=set)
    rejected: list[bytes] = field(default_factory=list)
    chunks: dict[tuple[str, int], bytes] = field(default_factory=dict)
    #: How many items, how many bytes, and the last client.
    put: tuple[int, int, str | None] = (0, 0, None)
    taken: tuple[int, int, str | None] = (0, 0, None)

    @property
    def has_space(self) -> bool:
        return not self.bound or len(self.items) < self.bound

    def count(self, counts: tuple[int, int, str | None], item: bytes) -> Any:
        is_large = is_manifest(item) and (token_of(item), 0) in self.chunks
        size = weight(item) if is_large else len(item)
        return counts[0] + 1, counts[1] + size, client_id()


class PlainQueue:
    """The queue of a name, if it exists, and the sessions that wait for it, first come first."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.changes = 0
        self.state: State | None = None
        self.putters: list[_Session] = []
        self.takers: list[_Session] = []

    def call(self, request: Any, caller: _Session) -> Any:
        do, do_anyway = for_items.get(type(request)), for_names.get(type(request))
        if do is None and do_anyway is None:
            return default_reply(request)
        with self.changed:
            if do_anyway is not None:
                reply = do_anyway(self, request, caller)
            elif do is not None:
                is_there = self.is_of(caller) or (self.state and type(request) is GetDiscipline)
                reply = do(self, request, caller) if is_there else Outcome.MISSING
            if isinstance(request, (Put, Take)):
                self._keep_place(request, reply, caller)
            if not isinstance(reply, (NoItem, NoSpace)):
                self._tell()
            caller.seen = self.changes
        return reply

    def is_of(self, caller: _Session) -> bool:
        """Whether there is a queue, of the caller's discipline."""
        return self.state is not None and self.state.discipline == caller.discipline

    def _keep_place(self, request: Put | Take, reply: Any, caller: _Session) -> None:
        line = self.putters if isinstance(request, Put) else self.takers
        waits = request.waits and isinstance(reply, (NoItem, NoSpace))
        if waits and caller not in line:
            line.append(caller)
        elif not waits:
            self.leave(caller)

    def leave(self, caller: _Session) -> None:
        with self.changed:
            for line in (self.putters, self.takers):
                if caller in line:
                    line.remove(caller)
                    self._tell()

    def _tell(self) -> None:
        self.changes += 1
        self.changed.notify_all()


#: Requests whose reply is MISSING where there is no queue; and requests that are always done.
for_items: Implementations[PlainQueue, [_Session]] = Implementations()
for_names: Implementations[PlainQueue, [_Session]] = Implementations()


@for_names.does(Open)
def open_queue(queue: PlainQueue, request: Open, caller: _Session) -> Any:
    state = queue.state
    if state is None:
        if request.how is How.ATTACH:
            return Outcome.MISSING
        state = queue.state = State(request.bound, caller.discipline)
    elif request.how is How.CREATE:
        return Existing(state.bound)
    elif state.discipline != caller.discipline:
        return Mismatch("discipline", state.discipline, caller.discipline)
    if request.user:
        state.users.add(request.user)
    return Opened(state.bound)


@for_names.does(Exists)
def exists(queue: PlainQueue, request: Exists, caller: _Session) -> bool:
    return queue.is_of(caller)


@for_items.does(Delete)
def delete(queue: PlainQueue, request: Delete, caller: _Session) -> Any:
    queue.state = None
    return Outcome.DONE


@for_items.does(GetDiscipline)
def get_discipline(queue: PlainQueue, request: GetDiscipline, caller: _Session) -> Any:
    return queue.state.discipline


@for_items.does(Enlist)
def enlist(queue: PlainQueue, request: Enlist, caller: _Session) -> Any:
    queue.state.users.add(request.user)
    return Outcome.DONE


@for_items.does(GetUsers)
def get_users(queue: PlainQueue, request: GetUsers, caller: _Session) -> Any:
    return sorted(queue.state.users)


@for_items.does(Dismiss)
def dismiss(queue: PlainQueue, request: Dismiss, caller: _Session) -> Any:
    users = queue.state.users
    if not users:
        return Outcome.MISSING
    users.difference_update(request.users)
    if not users:
        queue.state = None
    return len(users)


@for_items.does(Put)
def put(queue: PlainQueue, request: Put, caller: _Session) -> Any:
    state = queue.state
    if state.closed:
        return Outcome.CLOSED
    if request.waits and queue.putters and queue.putters[0] is not caller:
        return NoSpace(len(state.items))
    added = 0
    for item in request.items:
        if not (request.overfill or state.has_space):
            break
        state.items.append(item)
        state.put = state.count(state.put, item)
        added += 1
    return Added(added) if added else NoSpace(len(state.items))


@for_items.does(Take)
def take(queue: PlainQueue, request: Take, caller: _Session) -> Any:
    state = queue.state
    if not state.items:
        return Outcome.CLOSED if state.closed else NoItem()
    if request.waits and queue.takers and queue.takers[0] is not caller:
        return NoItem()
    items = [state.items.popleft() for _ in range(min(request.limit, len(state.items)))]
    for item in items:
        state.taken = state.count(state.taken, item)
    return Taken(items)


@for_names.does(TakeBack)
def take_back(queue: PlainQueue, request: TakeBack, caller: _Session) -> Any:
    return Outcome.DONE  # no session says that anything could go back


@for_items.does(SetAside)
def set_aside(queue: PlainQueue, request: SetAside, caller: _Session) -> Any:
    queue.state.rejected.append(request.item)
    return Outcome.DONE


@for_items.does(GetLength)
def get_length(queue: PlainQueue, request: GetLength, caller: _Session) -> Any:
    return len(queue.state.items)


@for_items.does(IsClosed)
def is_closed(queue: PlainQueue, request: IsClosed, caller: _Session) -> Any:
    return queue.state.closed


@for_items.does(SetBound)
def set_bound(queue: PlainQueue, request: SetBound, caller: _Session) -> Any:
    queue.state.bound = request.bound
    return Outcome.DONE


@for_items.does(Close)
def close(queue: PlainQueue, request: Close, caller: _Session) -> Any:
    if queue.state.closed and request.once:
        return Outcome.CLOSED
    queue.state.closed = True
    if request.immediate:
        queue.state.items.clear()
    return Outcome.DONE


@for_items.does(GetStats)
def get_stats(queue: PlainQueue, request: GetStats, caller: _Session) -> Any:
    state = queue.state
    (produced, bytes_in, producer), (consumed, bytes_out, consumer) = state.put, state.taken
    return Stats(
        len(state.items),
        state.bound,
        state.closed,
        *(produced, bytes_in, consumed, bytes_out),
        *(producer, consumer),
        unfinished=produced - len(state.rejected),
        rejected=len(state.rejected),
        in_flight=0,
    )


@for_items.does(StoreChunks)
def store_chunks(queue: PlainQueue, request: StoreChunks, caller: _Session) -> Any:
    if queue.state.closed:
        return Outcome.CLOSED
    for number, chunk in enumerate(request.chunks, request.first):
        queue.state.chunks[request.token, number] = b"".join(chunk)
    return Outcome.DONE


@for_names.does(ReadChunks)
def read_chunks(queue: PlainQueue, request: ReadChunks, caller: _Session) -> Any:
    for number, room in enumerate(request.rooms, request.first):
        there = queue.state.chunks if queue.is_of(caller) else {}
        chunk = there.get((request.token, number))
        if chunk is None:
            return Outcome.LOST
        for view in room:
            view[:], chunk = chunk[: view.nbytes], chunk[view.nbytes :]
    return Outcome.DONE


@for_names.does(SweepContents)
def sweep_contents(queue: PlainQueue, request: SweepContents, caller: _Session) -> bool:
    if queue.is_of(caller):
        kept = {token_of(item) for item in queue.state.items if is_manifest(item)}
        gone = {request.token} - kept
        queue.state.chunks = {k: v for k, v in queue.state.chunks.items() if k[0] not in gone}
    return False


class PlainHost:
    """The anonymous queues that one host uses."""

    def __init__(self, queues: dict[str, PlainQueue]) -> None:
        self.noted: set[QueueKey] = set()
        self.queues = queues

    def call(self, request: Any, caller: _Session) -> Any:
        return for_hosts[type(request)](self, request)

    def leave(self, caller: _Session) -> None:
        """No call waits here."""


for_hosts: Implementations[PlainHost, []] = Implementations()


@for_hosts.does(Remember)
def remember(host: PlainHost, request: Remember) -> Any:
    host.noted.add(request.queue)
    return Outcome.DONE


@for_hosts.does(GetRemembered)
def get_remembered(host: PlainHost, request: GetRemembered) -> Any:
    return sorted(host.noted)


@for_hosts.does(Forget)
def forget(host: PlainHost, request: Forget) -> Any:
    host.noted.difference_update(request.queues)
    for name, _ in request.queues:
        host.queues.pop(name, None)
    return Outcome.DONE


@for_hosts.does(Leave)
def leave(host: PlainHost, request: Leave) -> Any:
    return Outcome.DONE
