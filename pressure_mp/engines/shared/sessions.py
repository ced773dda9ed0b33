"""Sessions that do requests in shared memory, or at the broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ..blocking_coroutines import finish
from ..contract.contents import SweepContents
from ..contract.items import (
    Acknowledge,
    EndPrefetch,
    PeekItems,
    Prefetch,
    Put,
    Renew,
    Requeue,
    Retire,
    SetAside,
    Take,
    TakeBack,
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
from ..contract.replies import InUse, Later, Outcome
from ..contract.session import AsyncSession, Session
from .items import MOVE, TakenHere, at_broker_until, latest
from .layout import MOVED, SET_ASIDE
from .shared_items import SharedItems
from .shared_queue import SharedQueue

T = TypeVar("T")


class Calls:
    """What the sessions of threads and of event loops have in common. In a thread these coroutines
    never suspend."""

    __slots__ = ("_binding", "_is_here", "taken_here")

    _below: Session | AsyncSession | None

    def __init__(self, binding: SharedQueue) -> None:
        self._binding = binding
        self._is_here = False  # the last call was done in shared memory
        self.taken_here: list[bytes] = []

    @property
    def taken(self) -> TakeBack | None:
        if self.taken_here:
            return TakeBack(TakenHere(self.taken_here))
        return None if self._below is None else self._below.taken

    async def _ask(self, request: Any, end: float | None) -> Any:
        """Make a request of the broker."""
        raise NotImplementedError

    async def _change(self, function: Callable[[], T]) -> T:
        """Call a function that may block, and whose result is needed once it was called."""
        raise NotImplementedError

    async def _move(self, function: Callable[[], T]) -> T:
        """Call a function that may block, which other calls can go on with."""
        raise NotImplementedError

    async def _call_elsewhere(self, request: Any, end: float | None) -> Any:
        """Do a request that was not done at once: in shared memory, or at the broker when the items
        are there, or have to be."""
        binding, kind = self._binding, type(request)
        if binding.problem and kind not in _BESIDE:
            await self._move(partial(binding.check, end))
        items = binding.items
        if items is not None and kind is EndPrefetch:
            reply = await self._change(partial(items.end_prefetch, request))
            if reply is not MOVE:
                return reply
        if kind is TakeBack and type(request.call) is TakenHere:
            undoing = partial(binding.give_back, request.call, request.if_open, end)
            return await self._change(undoing)
        if items is not None and items.state != MOVED:
            does = _HERE.get(kind) if items.are_here else None
            if does is not None:
                reply = await self._change(partial(does, items, request, self, end))
                if reply is not MOVE:
                    self._is_here = True
                    return reply
            if kind not in _BESIDE or (kind in _COUNTING and not items.are_here):
                meanwhile = _MEANWHILE.get(kind)
                if meanwhile is None:
                    await self._move(partial(binding.move_to_broker, end))
                else:
                    limit = meanwhile.limit(request, end)
                    if not await self._move(partial(binding.move_until, limit, end)):
                        self._is_here = True
                        return meanwhile.reply
        self._is_here = False
        was_moved = items is None or items.state == MOVED
        if items is not None and kind is Prefetch:
            items.ring.readers.discard(request.reader)
        reply = await self._ask(binding.signed(request), end)
        changes = _BESIDE.get(kind) or _BEHIND.get(kind)
        if changes is None or changes is _same or (was_moved and kind in _COUNTING):
            return reply
        reply = await self._change(partial(changes, binding, request, reply))
        if reply is MOVE:  # meanwhile: the reply of the broker from before that is out of date
            return await self._call_elsewhere(request, end)
        return reply


class SharedSession(Calls):
    """For a thread."""

    __slots__ = ("_below", "found")

    def __init__(self, binding: SharedQueue) -> None:
        super().__init__(binding)
        self._below: Session | None = None
        self.found: list[Any] | None = None

    def call(self, request: Any, end: float | None = None) -> Any:
        items, kind = self._binding.items, type(request)
        if items is not None and kind in _AT_ONCE:
            reply = _AT_ONCE[kind](items, request, self, end)
            if reply is not MOVE:
                self._is_here = True
                return reply
        return finish(self._call_elsewhere(request, end))

    async def _ask(self, request: Any, end: float | None) -> Any:
        return self._at_broker.call(request, end)

    async def _change(self, function: Callable[[], T]) -> T:
        return function()

    async def _move(self, function: Callable[[], T]) -> T:
        return function()

    @property
    def _at_broker(self) -> Session:
        if self._below is None:
            self._below = self._binding.below.session()
        return self._below

    def send_ahead(self, request: Any) -> bool:
        """See :class:`Session`; a request that is done in shared memory is not sent ahead."""
        if self._binding.are_here:
            return False
        return self._at_broker.send_ahead(self._binding.signed(request))

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


#: Does a request of a session in shared memory.
Does = Callable[[SharedItems, Any, Calls, "float | None"], Any]

#: The functions that do most of the most frequent requests, and are tried first.
_AT_ONCE: dict[type, Does] = {
    Put: SharedItems.put,
    Take: SharedItems.take_at_once,
    Acknowledge: lambda items, request, session, end: items.acknowledge(*request),
}

#: The functions that do requests in shared memory, as long as the items are there.
_HERE: dict[type, Does] = {
    Take: SharedItems.take,
    Prefetch: lambda items, request, session, end: items.prefetch(request),
    CountDone: lambda items, request, session, end: items.count_done(),
    Join: lambda items, request, session, end: items.join(),
    Requeue: lambda items, request, session, end: _requeue(items, request),
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
    Put: Meanwhile(InUse("producer"), lambda request, end: at_broker_until(end)),
    Take: Meanwhile(InUse("consumer"), lambda request, end: latest(request.waits, end)),
    Prefetch: Meanwhile(Outcome.SHARED, lambda request, end: end),
}


def _requeue(items: SharedItems, request: Requeue) -> Any:
    """Requeue items in shared memory. For a process the broker is to do the same; and before, if it
    is to look whether the process was seen since."""
    if request.call is not None or request.numbers:
        return Outcome.DONE if items.requeue(request) else MOVE
    if request.seen is None:
        items.requeue(request)
    return MOVE


def _requeued(binding: SharedQueue, request: Requeue, reply: Any) -> Any:
    if request.seen is not None and reply is Outcome.DONE and binding.items is not None:
        binding.items.requeue(request)
    return reply


def _set_aside_held(items: SharedItems, request: SetAside) -> Any:
    return MOVE if request.number is None else items.set_aside_held(request)


def _opened(binding: SharedQueue, request: Open, reply: Any) -> Any:
    if type(reply) is Opened and request.user and binding.items is None:
        binding.make(reply.bound)
    return reply


def _dismissed(binding: SharedQueue, request: Dismiss, reply: Any) -> Any:
    if reply == 0 or reply is Outcome.MISSING:
        binding.ended()
    return reply


def _deleted(binding: SharedQueue, request: Delete, reply: Any) -> Any:
    if reply is Outcome.DONE:
        binding.ended()
    return reply


def _with_length(binding: SharedQueue, request: GetStats, reply: Any) -> Any:
    return reply if binding.items is None else binding.items.add_to_stats(reply)


def _with_items(binding: SharedQueue, request: Inspect, reply: Any) -> Any:
    return reply if binding.items is None else binding.items.add_to_inspection(reply)


def _closed(binding: SharedQueue, request: IsClosed, reply: Any) -> Any:
    if reply is not False or binding.items is None:
        return reply
    ring = binding.items.ring
    return ring.drops if request.immediate else ring.is_closed


def _set_aside(binding: SharedQueue, request: SetAside, reply: Any) -> Any:
    if reply is Outcome.DONE and binding.items is not None and binding.are_here:
        binding.items.count_done(SET_ASIDE)
    return reply


def _same(binding: SharedQueue, request: Any, reply: Any) -> Any:
    return reply


#: The functions that adapt the broker's replies, for requests about the queue that the broker does
#: while the items are in shared memory.
_BESIDE: dict[type, Callable[[SharedQueue, Any, Any], Any]] = {
    Open: _opened,
    Dismiss: _dismissed,
    GetStats: _with_length,
    Inspect: _with_items,
    IsClosed: _closed,
    SetAside: _set_aside,
    Requeue: _requeued,
    **dict.fromkeys((Exists, GetDiscipline, Enlist, GetUsers, Renew, Retire, SweepContents), _same),
}
#: The requests of these that count items.
_COUNTING = (GetStats, Inspect)

#: The functions that adapt the broker's replies when it has the items.
_BEHIND: dict[type, Callable[[SharedQueue, Any, Any], Any]] = {Delete: _deleted}
