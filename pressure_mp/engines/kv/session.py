"""Sessions at queues in a store, for threads and for asyncio tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from ...exceptions import PressureError
from ...identity.client import client_id, ticket
from ...off_loop import begin_off_loop
from ..bells import LoopBell, ThreadBell
from ..blocking_coroutines import finish
from ..cancelled_calls import UndoneTake, outcome_first, postponed, to_its_end
from ..closed_loops import give_back, own_loop
from ..contract.contents import StoreChunks
from ..contract.forwarding import Forward, NotSettled
from ..contract.items import Put, Requeue, Take, TakeBack, Taken
from ..contract.queues import Close
from ..contract.replies import Later
from ..contract.session import SHORTEST_TRY, Options, SessionDefaults, longest_wait
from ..contract.tasks import AckTask, AckTasks, CloseTasks, PutTasks, TakenTasks
from ..lines import MAY_WAIT
from .bells import Bells
from .line import Took
from .store import Busy, How

T = TypeVar("T")

#: The requests whose effect ``durability`` is for.
_CONFIRMED = (Put, Close, AckTask, AckTasks, PutTasks, CloseTasks, Forward)
#: The requests that put items or tasks.
_ADDING = (Put, StoreChunks, PutTasks, Forward)


class StoredQueue(Protocol):
    """The queue of one name, of whatever kind; or the broker, or the notes of a host."""

    def call(self, request: Any, caller: Any, how: How) -> Any:
        """Do a request, atomically, and wake the callers that can be served because of it."""

    def leave(self, caller: Any) -> None:
        """Give up the caller's place, and wake the next caller for what this one was woken for."""


class _Session(SessionDefaults):
    """The common part of the sessions of threads and of asyncio tasks."""

    _bell: ThreadBell | LoopBell | None = None
    took: Took | None = None
    is_placed = False
    _ticket = ""

    def __init__(self, queue: StoredQueue, bells: Bells, discipline: str, options: Options) -> None:
        self.discipline = discipline
        self.lease = options.lease
        self._options = options
        self._queue, self._bells = queue, bells
        self._is_durable = bool(options.durability)
        self.is_done = False

    @property
    def ticket(self) -> str:
        if not self._ticket:
            self._ticket = ticket()
        return self._ticket

    def _call(self, request: Any, end: float | None, wait: bool) -> Any:
        self.is_done, self.took = False, None
        durable = self._is_durable and isinstance(request, _CONFIRMED)
        adds = isinstance(request, _ADDING)
        reply = self._queue.call(request, self, How(durable, wait, self._last_try(end), adds))
        if self.is_placed and type(request) in MAY_WAIT:
            self.is_placed = isinstance(reply, (Later, NotSettled))
        return reply

    def _last_try(self, end: float | None) -> float:
        """Return the time until which a call that begins now is tried."""
        began, options = time.monotonic(), self._options
        last = began + options.reconnect
        if end is not None:
            last = min(last, max(end, began + SHORTEST_TRY))
        return last if options.until is None else min(last, options.until)

    @property
    def taken(self) -> TakeBack | None:
        return TakeBack(self.took) if self.is_done and self.took is not None else None

    def _note(self, bell: ThreadBell | LoopBell) -> None:
        bell.silence()
        self._bell = bell
        self.is_placed = True
        self._bells.note(self)

    async def _wait(self, later: Later, timeout: float | None) -> bool:
        assert self._bell is not None
        stop = self._bells.listen(self)
        try:
            return await self._bell.wait(longest_wait(later, timeout))
        finally:
            stop()

    def wake(self) -> None:
        if self._bell is not None:
            self._bell.ring()

    def _leave(self) -> None:
        self._bells.forget(self.ticket)
        with suppress(PressureError):  # then the place is lost with its lease
            self._queue.leave(self)


class StoredSession(_Session):
    """For a thread."""

    @property
    def client(self) -> str:
        return client_id()

    def call(self, request: Any, end: float | None = None) -> Any:
        return self._call(request, end, True)

    def will_wait(self) -> None:
        self._note(self._bell or ThreadBell())

    def wait(self, later: Later, timeout: float | None) -> bool:
        return finish(self._wait(later, timeout))

    def end(self) -> None:
        if self.is_placed:
            self._leave()


async def _to_its_end_off_loop(function: Callable[..., T], *args: object) -> T:
    """Call a function in another thread, also if the loop ends before that begins."""
    return await asyncio.shield(begin_off_loop(function, *args))


class _Elsewhere:
    """A call that another thread makes for a task of the loop."""

    def __init__(self) -> None:
        #: The first entry stays, in one step: the garbage collector may leave it at any point.
        self._fate: dict[str, bool] = {}

    @property
    def is_left(self) -> bool:
        """Whether the task does not wait for it any more."""
        return self._fate.get("is_left", False)

    def ends(self) -> bool:
        """Note that it has ended; return whether the task has left it."""
        return self._fate.setdefault("is_left", False)

    def leave(self) -> bool:
        """Leave it to its thread; return whether it has not ended before."""
        return self._fate.setdefault("is_left", True)


class AsyncStoredSession(_Session):
    """For an asyncio task."""

    _bell: LoopBell

    def __init__(self, queue: StoredQueue, bells: Bells, discipline: str, options: Options) -> None:
        super().__init__(queue, bells, discipline, options)
        self.client = client_id()  # not that of a thread which makes a call for the loop
        self._elsewhere: _Elsewhere | None = None
        self._loop, self._bell = own_loop(), LoopBell()

    async def call(self, request: Any, end: float | None = None) -> Any:
        try:
            reply = await self._call_here(request, end)
            if isinstance(reply, (Taken, TakenTasks)):
                postponed.check()  # a cancelled task does not get the reply
            return reply
        except asyncio.CancelledError as error:
            if self._elsewhere is not None and self._elsewhere.leave():
                raise
            found = await self._put_back(request)
            if found is None:
                raise
            postponed.add(error)
            return found

    async def _call_here(self, request: Any, end: float | None) -> Any:
        if not self._is_durable:
            try:
                return self._call(request, end, False)
            except Busy:
                pass
        self._elsewhere = elsewhere = _Elsewhere()
        self._loop.note(self)
        try:
            calling = begin_off_loop(self._call_elsewhere, elsewhere, request, end)
            return await outcome_first(calling)
        finally:
            if not self.is_placed:
                self._loop.forget(self)

    def _call_elsewhere(self, elsewhere: _Elsewhere, request: Any, end: float | None) -> Any:
        """Make a call in another thread, and undo it if its task was cancelled and does not wait
        for it any more."""
        reply: Any = None
        try:
            if not elsewhere.is_left:
                reply = self._call(request, end, True)
            return reply
        finally:
            if elsewhere.ends():
                undoing = self._undoing(request, reply)
                with suppress(PressureError):
                    if undoing is not None:
                        self._call(undoing, None, True)
                if self.is_placed:
                    self._leave()

    def _undoing(self, request: Any, reply: Any) -> TakeBack | Requeue | None:
        """Return the request that gives back the items of the last call."""
        if isinstance(request, Take) and request.hold is not None and isinstance(reply, Taken):
            return Requeue(request.hold.owner, numbers=reply.numbers)
        return self.taken

    async def _put_back(self, request: Any) -> Taken | None:
        """Give taken items back that no caller has, or return them if the task has them after
        all."""
        taken = self.taken
        if taken is None or self.found is not None:
            return None
        undone = UndoneTake(request, partial(self._take_back, taken))
        with suppress(asyncio.CancelledError):  # it was cancelled before, too
            await to_its_end(undone.run())
        return undone.end()

    async def _take_back(self, taken: TakeBack, if_open: bool) -> Any:
        with suppress(PressureError):  # the caller gets the cancellation instead
            undoing = taken._replace(if_open=if_open)
            return await _to_its_end_off_loop(self._call, undoing, None, True)

    def will_wait(self) -> None:
        self._note(self._bell)
        self._loop.note(self)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        return await self._wait(later, timeout)

    async def end(self) -> None:
        if not self._ticket and self._elsewhere is None:
            return
        if not self._loop.is_running:
            self.leave_behind()
            return
        self._loop.forget(self)
        is_left = self._elsewhere is not None and self._elsewhere.is_left
        if self.is_placed and not is_left:
            await to_its_end(_to_its_end_off_loop(self._leave))

    def leave_behind(self) -> None:
        """Leave in another thread: the loop was closed, or this operation's task is garbage."""
        self._loop.forget(self)
        if self._elsewhere is not None and self._elsewhere.leave():
            return  # its thread gives back what it takes, and leaves
        if self.is_placed:
            give_back(self._leave)
