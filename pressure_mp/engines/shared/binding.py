"""A queue whose items are in shared memory until it needs the broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...exceptions import BrokerError, BrokerUnavailable
from ...off_loop import off_loop
from ..contract.contents import SweepContents
from ..contract.items import (
    Acknowledge,
    AcknowledgeReply,
    EndPrefetch,
    Hold,
    PeekItems,
    Prefetch,
    Put,
    Renew,
    Requeue,
    Retire,
    SetAside,
    Take,
    TakeBack,
    Taken,
)
from ..contract.queues import (
    Close,
    CountDone,
    Delete,
    Dismiss,
    Enlist,
    Exists,
    GetDiscipline,
    GetLength,
    GetStats,
    GetUsers,
    Inspect,
    IsClosed,
    Join,
    Open,
    Opened,
    SetBound,
)
from ..contract.replies import InUse, Later, NoItem, Outcome
from ..contract.session import SHORTEST_TRY, AsyncSession, Options, Session
from . import ring_files
from .deliveries import HoldingRing
from .header import MOVED, SET_ASIDE
from .items import MOVE, latest
from .shared_items import Held, Moved, SharedItems


class Below(Protocol):
    """The queue at the broker."""

    def session(self) -> Any:
        """See :class:`Binding`."""

    def asession(self) -> AsyncSession:
        """See :class:`Binding`."""

    def add_back(self, items: list[bytes], end: float | None) -> None:
        """Put taken items in front. Blocks and raises as :meth:`add_moved` does."""

    def add_moved(self, moved: Moved, end: float | None) -> None:
        """Add the moved items that were not yet added, beyond the bound if necessary. Does nothing
        when the queue does not exist any more. ``end`` is as in :meth:`Session.call`. Raises
        BrokerUnavailable, BrokerError."""

    def add_held(self, held: list[Held], end: float | None) -> None:
        """Note moved items as in flight. Blocks and raises as :meth:`add_moved` does."""

    def were_moved(self, end: float | None) -> bool:
        """Tell whether :meth:`add_moved` was ever called; raises what :meth:`add_moved` raises."""


class SharedBinding:
    """A binding to a queue with items in shared memory."""

    def __init__(
        self, below: Below, name: str, lease: int, ring: HoldingRing | None, problem: str = ""
    ) -> None:
        """``problem``: the reason why this process cannot see the items, which are in shared
        memory."""
        self.below = below
        self.problem = problem
        self.name = name
        self._lease = lease
        self._sign: Callable[[bytes], bytes] | None = None
        self.items = None if ring is None else SharedItems(ring, lease, self._set_aside)

    def session(self) -> SharedSession:
        return SharedSession(self)

    def asession(self) -> SharedLoopSession:
        return SharedLoopSession(self)

    def make(self, bound: int) -> None:
        """Keep the items of a queue that was created in shared memory, if the host has that."""
        ring = ring_files.create(self.name, bound)
        self._use(None if ring is None else SharedItems(ring, self._lease, self._set_aside))
        self.problem = ""

    def _use(self, items: SharedItems | None) -> None:
        self.items = items
        if self._sign is not None:
            self.sign_with(self._sign)

    @property
    def are_here(self) -> bool:
        return self.items is not None and self.items.state != MOVED

    @property
    def is_closed(self) -> bool:
        """Whether the queue was shut down while its items were in shared memory."""
        return self.items is not None and self.items.ring.is_closed

    def put_here(self, item: bytes) -> bool:
        items = self.items
        return items is not None and items.put_one(item)

    def hold_here(self, hold: Hold) -> Taken | None:
        """See :class:`Local`."""
        taken = None if self.items is None else self.items.take_one(hold, None)
        return taken if type(taken) is Taken else None

    def acknowledge_here(self, owner: str, number: int) -> AcknowledgeReply | None:
        """See :class:`Local`."""
        reply = MOVE if self.items is None else self.items.acknowledge(owner, number)
        return None if reply is MOVE else reply

    def requeue_lost(self) -> None:
        """See :class:`Local`."""
        if self.items is not None and self.are_here:
            self.items.requeue_lost()

    def sign_with(self, sign: Callable[[bytes], bytes]) -> None:
        self._sign = sign
        if self.items is not None:
            self.items.ring.sign = sign
            self.items.ring.note_signed()

    def signed(self, request: Any) -> Any:
        """Convert a request for the broker, wherever the items are now."""
        sign, items = self._sign, self.items
        if sign is None and items is not None and items.ring.is_signed:
            sign = items.sign
        if sign is not None:
            if type(request) is Put:
                return request._replace(items=list(map(sign, request.items)))
            if type(request) is SetAside:
                return request._replace(item=sign(request.item))
        return request

    def move_to_broker(self, end: float | None = None) -> None:
        """See :class:`Local`; ``end`` is as in :meth:`Session.call`."""
        self.check(end)
        if not self.move_until(_at_broker_until(end), end):
            raise BrokerUnavailable(
                f"another process moves the items of queue {self.name!r} to the broker, and is not "
                "done yet: try again"
            )

    def move_until(self, limit: float | None, end: float | None) -> bool:
        """Move the items to the broker, or wait until another process has moved them. Returns
        whether all are there at ``limit``, on the monotonic clock. ``end`` is as in
        :meth:`Session.call`."""
        if self.items is None or self.items.state == MOVED:
            return True  # without the locks of the file
        finish = partial(self._finish_move, end)
        return self.items.move(lambda moved: self.below.add_moved(moved, end), finish, limit)

    def _set_aside(self, item: bytes) -> None:
        session = self.below.session()
        try:
            session.call(SetAside(item))
        finally:
            session.end()

    def _finish_move(self, end: float | None, held: list[Held], done: list[Any]) -> None:
        session = self.below.session()
        try:
            if held:
                self.below.add_held(held, end)
            for request in done:
                if type(session.call(request, end)) is InUse:
                    raise BrokerUnavailable(
                        f"queue {self.name!r} was shut down in shared memory, and is in use at the "
                        "broker: try again"
                    )
        finally:
            session.end()

    def give_back(self, taken: TakenHere, if_open: bool, end: float | None) -> Any:
        """Put items in front that were taken from shared memory."""
        assert self.items is not None
        reply = self.items.give_back(taken.items, if_open)
        if reply is MOVE:
            self.move_to_broker(end)
            if taken.items:
                self.below.add_back(self.items.signed(taken.items), end)
                del taken.items[:]
            reply = Outcome.DONE
        return reply

    def ended(self) -> None:
        """Remove the items: the queue does not exist any more."""
        if self.items is not None:
            self.items.end()
        ring_files.remove(self.name)

    def check(self, end: float | None = None) -> None:
        """Look again for items that could not be seen. Raises BrokerError if this process cannot
        see them now, and the broker does not have them either; ``end`` is as in
        :meth:`Session.call`."""
        if not self.problem:
            return
        found = bind(self.below, self.name, Options(lease=self._lease, shares_memory=True))
        self.problem = found.problem
        self._use(found.items)
        # Their file may have been removed; a new process cannot see there that they were moved.
        if self.problem and self.below.were_moved(end):
            self.problem = ""
        if self.problem:
            raise BrokerError(
                f"queue {self.name!r} has its items in memory that the processes of one user on "
                f"one host share, and this process cannot see them: {self.problem}. Create the "
                f"queue with {ring_files.VARIABLE}=0 in the environment"
            )


def bind(below: Below, name: str, options: Options) -> Any:
    """Bind an anonymous queue: at the broker alone, or with its items in shared memory, if they are
    there or may be."""
    try:
        ring, problem = ring_files.find(name), "has no file there"
    except OSError as error:
        ring, problem = None, str(error)
        options = options._replace(shares_memory=True)
    if ring is None and options.shares_memory:
        return SharedBinding(below, name, options.lease, None, problem)
    if ring is None:
        return below
    # When the items were moved only the file is left, which is removed with the queue.
    return SharedBinding(below, name, options.lease, None if ring.state == MOVED else ring)


def _at_broker_until(end: float | None) -> float | None:
    """Return the time until which a call waits for other processes that move the items: at least a
    short one."""
    return None if end is None else max(end, time.monotonic() + SHORTEST_TRY)


class TakenHere:
    """The items that a session took out of shared memory, until they are put back."""

    __slots__ = ("items",)

    def __init__(self, items: list[bytes]) -> None:
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TakenHere) and other.items is self.items

    def __hash__(self) -> int:
        return id(self.items)


class SharedSession:
    """A session that does requests in shared memory, or at the broker."""

    __slots__ = ("_below", "_binding", "_is_here", "found", "taken_here")

    def __init__(self, binding: SharedBinding) -> None:
        self._binding = binding
        self._below: Session | None = None
        self._is_here = False  # the last call was done in shared memory
        self.found: list[Any] | None = None
        self.taken_here: list[bytes] = []

    @property
    def taken(self) -> TakeBack | None:
        if self.taken_here:
            return TakeBack(TakenHere(self.taken_here))
        return None if self._below is None else self._below.taken

    def call(self, request: Any, end: float | None = None) -> Any:
        items, kind = self._binding.items, type(request)
        if items is not None and kind in _AT_ONCE:
            reply = _AT_ONCE[kind](items, request, self, end)
            if reply is not MOVE:
                self._is_here = True
                return reply
        if self._binding.problem and kind not in _BESIDE:
            self._binding.check(end)
            items = self._binding.items
        if items is not None and kind is EndPrefetch:
            reply = items.end_prefetch(request)
            if reply is not MOVE:
                return reply
        if kind is TakeBack and type(request.call) is TakenHere:
            return self._binding.give_back(request.call, request.if_open, end)
        if items is not None and items.state != MOVED:
            if items.are_here:
                does = _HERE.get(kind)
                if does is not None:
                    reply = does(items, request, self, end)
                    if reply is not MOVE:
                        self._is_here = True
                        return reply
            if kind not in _BESIDE or (kind in _COUNTING and not items.are_here):
                meanwhile = _MEANWHILE.get(kind)
                if meanwhile is None:
                    self._binding.move_to_broker(end)
                elif not self._binding.move_until(meanwhile.limit(request, end), end):
                    self._is_here = True
                    return meanwhile.reply
        self._is_here = False
        was_moved = items is None or items.state == MOVED
        if items is not None and kind is Prefetch:
            items.ring.readers.discard(request.reader)
        reply = self._at_broker.call(self._binding.signed(request), end)
        changes = _BESIDE.get(kind) or _BEHIND.get(kind)
        if changes is None or (was_moved and kind in _COUNTING):
            return reply
        reply = changes(self._binding, request, reply)
        # The items were moved meanwhile: the reply of the broker from before that is out of date.
        return self.call(request, end) if reply is MOVE else reply

    def ask_broker(self, request: Any, end: float | None) -> Any:
        """Make a request of the broker, wherever the items are."""
        return self._at_broker.call(request, end)

    @property
    def _at_broker(self) -> Session:
        if self._below is None:
            self._below = self._binding.below.session()
        return self._below

    def send_ahead(self, request: Any, later: NoItem | None = None, timeout: float = 0.0) -> bool:
        """See :class:`Session`; a request that is done in shared memory is not sent ahead."""
        if self._binding.are_here:
            return False
        return self._at_broker.send_ahead(self._binding.signed(request), later, timeout)

    def wait(self, later: Later, timeout: float | None) -> bool:
        items = self._binding.items
        if self._is_here and items is not None:
            return items.wait(later, timeout)
        return self._at_broker.wait(later, timeout)

    def interrupted(self) -> None:
        if self._below is not None:
            self._below.interrupted()

    def end(self) -> None:
        if self._below is not None:
            self._below.end()


class SharedLoopSession:
    """A session for asyncio. It moves the items: an event loop cannot wait for shared memory."""

    def __init__(self, binding: SharedBinding) -> None:
        self._binding = binding
        self._below = binding.below.asession()

    @property
    def found(self) -> list[Any] | None:
        return self._below.found

    @found.setter
    def found(self, found: list[Any] | None) -> None:
        self._below.found = found

    async def call(self, request: Any, end: float | None = None) -> Any:
        kind = type(request)
        changes = _BEHIND.get(kind)
        if kind in _BESIDE and kind not in _COUNTING:
            changes = _BESIDE[kind]
        elif self._binding.are_here or self._binding.problem:
            await off_loop(self._binding.move_to_broker)
        reply = await self._below.call(request, end)
        return reply if changes is None else changes(self._binding, request, reply)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        return await self._below.wait(later, timeout)

    async def end(self) -> None:
        await self._below.end()


#: The functions that do most of the most frequent requests, and are tried first.
_AT_ONCE: dict[type, Callable[[SharedItems, Any, SharedSession, float | None], Any]] = {
    Put: SharedItems.put,
    Take: SharedItems.take_at_once,
    Acknowledge: lambda items, request, session, end: items.acknowledge(*request),
}

#: The functions that do requests in shared memory, as long as the items are there.
_HERE: dict[type, Callable[[SharedItems, Any, SharedSession, float | None], Any]] = {
    Take: SharedItems.take,
    Prefetch: SharedItems.prefetch,
    CountDone: lambda items, request, session, end: items.count_done(),
    Join: lambda items, request, session, end: items.join(),
    Requeue: lambda items, request, session, end: _requeue(items, request, session, end),
    SetAside: lambda items, request, session, end: _set_aside_held(items, request),
    SetBound: lambda items, request, session, end: items.set_bound(request),
    Close: lambda items, request, session, end: items.close(request, end),
    GetLength: lambda items, request, session, end: items.length(),
    PeekItems: lambda items, request, session, end: items.peek(request),
}


class Meanwhile(NamedTuple):
    """Replies to a request that needs the items at the broker, when another process is still moving
    them at ``limit(request, end)`` on the monotonic clock."""

    reply: Any
    limit: Callable[[Any, float | None], float | None]


#: The requests that do not fail then: each has a reply that says that another process has the
#: items.
_MEANWHILE: dict[type, Meanwhile] = {
    Put: Meanwhile(InUse("producer"), lambda request, end: _at_broker_until(end)),
    Take: Meanwhile(InUse("consumer"), lambda request, end: latest(request.waits, end)),
    Prefetch: Meanwhile(Outcome.SHARED, lambda request, end: end),
}


def _requeue(
    items: SharedItems, request: Requeue, session: SharedSession, end: float | None
) -> Any:
    """Requeue items in shared memory, and for a process all that it has."""
    if request.call is not None or request.numbers:
        return Outcome.DONE if items.requeue(request) else MOVE
    if request.seen is None:
        items.requeue(request)
        return MOVE
    reply = session.ask_broker(request, end)
    if reply is Outcome.DONE:
        items.requeue(request)
    return reply


def _set_aside_held(items: SharedItems, request: SetAside) -> Any:
    return MOVE if request.number is None else items.set_aside_held(request)


def _opened(binding: SharedBinding, request: Open, reply: Any) -> Any:
    if type(reply) is Opened and request.user and binding.items is None:
        binding.make(reply.bound)
    return reply


def _dismissed(binding: SharedBinding, request: Dismiss, reply: Any) -> Any:
    if reply == 0 or reply is Outcome.MISSING:
        binding.ended()
    return reply


def _deleted(binding: SharedBinding, request: Delete, reply: Any) -> Any:
    if reply is Outcome.DONE:
        binding.ended()
    return reply


def _with_length(binding: SharedBinding, request: GetStats, reply: Any) -> Any:
    return reply if binding.items is None else binding.items.add_to_stats(reply)


def _with_items(binding: SharedBinding, request: Inspect, reply: Any) -> Any:
    return reply if binding.items is None else binding.items.add_to_inspection(reply)


def _closed(binding: SharedBinding, request: IsClosed, reply: Any) -> Any:
    return binding.is_closed if reply is False else reply


def _set_aside(binding: SharedBinding, request: SetAside, reply: Any) -> Any:
    if reply is Outcome.DONE and binding.items is not None and binding.are_here:
        binding.items.count_done(SET_ASIDE)
    return reply


def _same(binding: SharedBinding, request: Any, reply: Any) -> Any:
    return reply


#: The functions that adapt the broker's replies, for requests about the queue that the broker does
#: while the items are in shared memory.
_BESIDE: dict[type, Callable[[SharedBinding, Any, Any], Any]] = {
    Open: _opened,
    Dismiss: _dismissed,
    GetStats: _with_length,
    Inspect: _with_items,
    IsClosed: _closed,
    SetAside: _set_aside,
    **dict.fromkeys(
        (Exists, GetDiscipline, Enlist, GetUsers, Renew, Retire, Requeue, SweepContents), _same
    ),
}
#: The requests of these that count items.
_COUNTING = (GetStats, Inspect)

#: The functions that adapt the broker's replies when it has the items.
_BEHIND: dict[type, Callable[[SharedBinding, Any, Any], Any]] = {Delete: _deleted}
