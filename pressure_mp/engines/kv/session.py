"""Sessions at queues in a store, for threads and for asyncio tasks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from ...exceptions import PressureError
from ...identity.client import client_id, ticket
from ...off_loop import off_loop
from ..bells import LoopBell, ThreadBell
from ..blocking_coroutines import finish
from ..cancelled_calls import UndoneTake, outcome_first, postponed, to_its_end
from ..closed_loops import OwnLoop, give_back, own_loop
from ..contract.items import Put, TakeBack, Taken
from ..contract.queues import Close
from ..contract.replies import Later
from ..contract.session import Options, SessionDefaults, longest_wait
from ..contract.tasks import AckTask, AckTasks, CloseTasks, PutAwaited, PutTasks, TakenTasks
from ..lines import MAY_WAIT
from .bells import Bells
from .line import Took
from .store import Busy

#: The requests whose effect ``durability`` is for.
_CONFIRMED = (Put, Close, AckTask, AckTasks, PutTasks, PutAwaited, CloseTasks)


class StoredQueue(Protocol):
    """The queue of one name, of whatever kind; or the broker, or the notes of a host."""

    def call(self, request: Any, caller: Any, durable: bool, wait: bool) -> Any:
        """Do a request, atomically, and wake the callers that can be served because of it."""

    def leave(self, caller: Any) -> None:
        """Give up the caller's place, and wake the next caller for what this one was woken for."""


class BaseStoredSession(SessionDefaults):
    """The common part of the sessions of threads and of asyncio tasks."""

    _bell: ThreadBell | LoopBell | None = None
    took: Took | None = None
    is_placed = False
    _ticket = ""

    def __init__(self, queue: StoredQueue, bells: Bells, discipline: str, options: Options) -> None:
        self.discipline = discipline
        self.lease = options.lease
        self._queue, self._bells = queue, bells
        self._is_durable = bool(options.durability)
        self.is_done = False

    @property
    def client(self) -> str:
        return client_id()

    @property
    def ticket(self) -> str:
        if not self._ticket:
            self._ticket = ticket()
        return self._ticket

    def _call(self, request: Any, wait: bool) -> Any:
        self.is_done, self.took = False, None
        durable = self._is_durable and isinstance(request, _CONFIRMED)
        reply = self._queue.call(request, self, durable, wait)
        if self.is_placed and type(request) in MAY_WAIT:
            self.is_placed = isinstance(reply, Later)
        return reply

    @property
    def taken(self) -> TakeBack | None:
        return TakeBack(self.took) if self.is_done and self.took is not None else None

    def _note(self, bell: ThreadBell | LoopBell) -> None:
        bell.silence()
        self._bell = bell
        self.is_placed = True
        self._bells.note(self.ticket, self)

    def wake(self) -> None:
        if self._bell is not None:
            self._bell.ring()

    def _leave(self) -> None:
        self._bells.forget(self.ticket)
        self._queue.leave(self)


class StoredSession(BaseStoredSession):
    """For a thread."""

    def call(self, request: Any, end: float | None = None) -> Any:
        return self._call(request, True)

    def will_wait(self) -> None:
        self._note(self._bell or ThreadBell())

    def wait(self, later: Later, timeout: float | None) -> bool:
        assert self._bell is not None
        return finish(self._bell.wait(longest_wait(later, timeout)))

    def end(self) -> None:
        if self.is_placed:
            self._leave()


class AsyncStoredSession(BaseStoredSession):
    """For an asyncio task."""

    def __init__(self, queue: StoredQueue, bells: Bells, discipline: str, options: Options) -> None:
        super().__init__(queue, bells, discipline, options)
        #: Only of a session that waited.
        self._loop: OwnLoop | None = None

    async def call(self, request: Any, end: float | None = None) -> Any:
        if self._loop is None:
            self._loop, self._bell = own_loop(), LoopBell()
        try:
            reply = await self._call_here(request)
            if isinstance(reply, (Taken, TakenTasks)):
                postponed.check()  # a cancelled task does not get the reply
            return reply
        except asyncio.CancelledError:
            found = await self._put_back(request)
            if found is None:
                raise
            postponed.add()
            return found

    async def _call_here(self, request: Any) -> Any:
        if not self._is_durable:
            try:
                return self._call(request, False)
            except Busy:
                pass
        return await outcome_first(asyncio.ensure_future(off_loop(self._call, request, True)))

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
            return await off_loop(self._call, taken._replace(if_open=if_open), True)

    def will_wait(self) -> None:
        assert self._bell is not None
        assert self._loop is not None
        self._note(self._bell)
        self._loop.note(self)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        assert self._bell is not None
        return await self._bell.wait(longest_wait(later, timeout))

    async def end(self) -> None:
        if not self._ticket:
            return
        assert self._loop is not None
        if not self._loop.is_running:
            self.leave_behind()
            return
        self._loop.forget(self)
        if self.is_placed:
            await to_its_end(off_loop(self._leave))

    def leave_behind(self) -> None:
        """Leave in another thread: the loop was closed, or this operation's task is garbage."""
        assert self._loop is not None
        self._loop.forget(self)
        if self.is_placed:
            give_back(self._leave)
