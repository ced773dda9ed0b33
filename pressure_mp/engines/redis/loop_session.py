"""The session of an asyncio task: quick calls share a connection, operations that wait do so in a
line of their loop first, and a cancelled operation takes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any

from ...exceptions import BrokerUnavailable, PressureError
from ..cancelled_calls import LAST_SECONDS, UndoneTake, postponed, to_its_end
from ..closed_loops import give_back
from ..contract.cancellation import is_unknown
from ..contract.forwarding import Forward
from ..contract.items import Put, Take, TakeBack, Taken
from ..contract.queues import Join
from ..contract.replies import Later, NoSpace
from ..contract.requests import Request
from ..contract.session import ONE_TRY
from ..contract.tasks import TakenTasks, TakeTasks
from ..lines import LARGE, MAY_WAIT, Place, line_of
from ..retries import patience
from .binding import CLAIMING, NOTIFYING, TAKING, RedisBinding
from .blocking import BlockingSession
from .caller import Call
from .channels import Channel
from .lanes import Lane
from .loop_pool import LoopPool
from .loop_wire import LoopWire
from .one_script import FirstScript, bells_in
from .packing import pack_command
from .requests import implementations
from .requests.forwarding import try_forward
from .scripts import FORWARDS, read_bare
from .session import CAME_AGAIN, Attempt, RedisSession
from .statuses import DONE, FIRST, NOW, TRY, Reply
from .task_waiting import TaskWaiter
from .turns import Turns
from .wire import Carrier

#: Seconds for which taken items are tried to be given back, if the server cannot be reached, or is
#: silent. It keeps the replies of takes for about so long.
_TO_GO_BACK = 30.0


class LoopSession(RedisSession):
    """The session of one operation. It has a connection of its own only while it waits at the
    server, or for calls that name the connection. Quick calls go over channels."""

    _pool: LoopPool

    def __init__(
        self, binding: RedisBinding, pool: LoopPool, begin: Callable[[], BlockingSession]
    ) -> None:
        """``begin`` makes a session for a thread."""
        super().__init__(binding, pool)
        self._begin = begin
        self._place: Place | None = None
        #: The key of the line with which the next call is made together.
        self._together: Hashable = None
        #: The channel of the call that took items, which stays the last one in its lane until the
        #: end.
        self._kept: Channel | None = None

    # Lines

    async def call(self, request: Request, end: float | None = None) -> Any:
        try:
            reply = await self._call_in_turn(request, end)
            if isinstance(reply, TakenTasks):
                postponed.check()  # it may have been cancelled while it woke waiters
        except asyncio.CancelledError as error:
            if self.found is not None:  # the caller gets the items, and is cancelled afterwards
                postponed.add(error)
                raise BrokerUnavailable(
                    "the call was cancelled: the next sweep removes what is left"
                ) from None
            taken = await self._put_back(request, waits=not is_unknown(error))
            if taken is None:
                raise
            postponed.add(error)
            return taken
        except PressureError as error:
            if self._kept is not None and not error.took_nothing:
                self._leave_lane(self._kept)
            raise
        return reply

    async def _call_in_turn(self, request: Request, end: float | None) -> Any:
        found = implementations[type(request)]
        line = line_of(request)
        if line is None:
            reply = await found(self, request, end)
            place = self._place
            if type(reply) is NoSpace and self.waiter is not None:  # it puts tasks, and waits
                if place is None or place.is_left:
                    to_put = (self.binding.name, self.binding.discipline, "space")
                    self._place = self._pool.lines.join(to_put, None)
            elif place is not None and type(request) in MAY_WAIT:
                place.leave()
            if type(reply) is TakenTasks and reply.later is not None:
                self.waiter = None  # other tasks may be in the line before it
            return reply
        what, later = line
        place, said = self._place, None
        if place is None or place.is_left:
            key = (self.binding.name, self.binding.discipline, what)
            if type(request) in (Join, Forward) or (
                self._is_durable(request) and key not in self._pool.lines
            ):
                reply, said = await self._try_at_once(request, end)
                if reply is not None:
                    return reply
            enough = self.binding.tries.get(type(request))
            place = self._place = self._pool.lines.join(key, enough, self._is_alone(request))
        if place.asks:
            self._together = place.together
            reply, said = await self._try_at_once(request, end)
            self._together = None
            if reply is not None:
                place.leave()
                return reply
            place.was_refused()
        if not place.has_turn:
            return later
        is_first_call = self.waiter is None
        if said is not None and isinstance(found, FirstScript):
            reply = await found.rest(self, request, end, said)
        else:
            reply = await found(self, request, end)
        is_served = not isinstance(reply, Later)
        shortcut = self.binding.tries.get(type(request))
        if is_first_call and shortcut is not None:
            shortcut.note(is_served)
        if is_served and type(request) is Join:
            place.clear()
        elif is_served:
            place.leave()
        return reply

    def _is_durable(self, request: Request) -> bool:
        return type(request) is Put and self.binding.durability("put") is not None

    def _is_alone(self, request: Request) -> bool:
        """Tell whether a call does not go over the shared connection."""
        if not isinstance(request, Put):
            return False
        return self._is_durable(request) or sum(map(len, request.items)) >= LARGE

    async def _try_at_once(self, request: Request, end: float | None) -> tuple[Any, Reply | None]:
        """Try the request without being the first in line. Returns the reply, None if the caller
        has to wait; and the reply of a first script that did not serve it."""
        found = implementations[type(request)]
        if isinstance(request, Join):
            reply = await found(self, request, end)
        elif isinstance(request, Forward):
            reply = await try_forward(self, request, end)
        elif isinstance(request, TakeTasks):
            reply = await found(self, request._replace(waits=False), end)
        elif not isinstance(found, FirstScript):
            return None, None
        elif (script := found.first(self.binding, request)) is not None:
            said = await self.script(*script, end)
            return found.read(request, said), said
        elif self.binding.tries[type(request)].is_open:
            assert isinstance(request, (Put, Take))
            self.waiter = Turns(self, tries=True)
            reply = await found.rest(self, request._replace(waits=False), end, None)
        else:
            return None, None
        if not isinstance(reply, Later):
            return reply, None
        if (shortcut := self.binding.tries.get(type(request))) is not None:
            shortcut.close()
        return None, None

    async def wait(self, later: Later, timeout: float | None) -> bool:
        place = self._place
        if place is not None and not (place.is_left or place.has_turn):
            return await place.wait(timeout)
        if self.waiter is None:  # it is its turn, and only a call begins a wait
            return True
        return await self.waiter.wait(later, timeout)

    async def end(self) -> None:
        if not self._pool.loop.is_running:
            self.leave_behind()
            return
        self._pool.loop.forget(self)
        try:
            await super().end()
        finally:
            if self._place is not None:
                self._place.leave()
            kept, self._kept = self._kept, None
            if kept is not None and not kept.is_closed:
                self._pool.take_in(kept)

    # A loop that runs no more

    async def park(
        self, signal: str, timeout: float | None, then: Call | None = None, lasts: float = 0.0
    ) -> bool:
        self._pool.loop.note(self)
        return await super().park(signal, timeout, lasts=lasts)

    async def _abandon(self) -> None:
        if self._pool.loop.is_running:
            await super()._abandon()
        else:
            self.leave_behind()

    def leave_behind(self) -> None:
        """Have a thread give everything back: the loop was closed, or this operation's task is
        garbage, so nothing can be awaited."""
        self._pool.loop.forget(self)
        wire, self._wire, self._parked = self._wire, None, None
        if isinstance(wire, LoopWire):
            wire.after_fork()  # let the server see its end without the loop
        waiter, self.waiter = self.waiter, None
        ticket = waiter.ticket if isinstance(waiter, Turns) else None
        taken, self.taken = self.taken, None
        wish = waiter.left_behind() if isinstance(waiter, TaskWaiter) else None
        held = ticket is not None or taken is not None or wish is not None
        if held and not self._pool.loop.is_parents:
            give_back(partial(_give_back, self._begin, ticket, taken, wish))

    # Channels

    async def script(
        self,
        op: str,
        args: tuple[Any, ...] = (),
        end: float | None = None,
        attempt: Attempt | None = None,
    ) -> Reply:
        if attempt is None and op in self.binding.quick:
            reply = await self._call_quickly(op, args, end)
            if reply is not None:
                return reply
        work = super().script(op, args, end, attempt)
        if op not in NOTIFYING:
            return await work
        try:
            return await to_its_end(work, LAST_SECONDS)
        except asyncio.CancelledError as error:
            postponed.add(error)  # the call that wakes other waiters is done
            return []

    async def _call_quickly(
        self, op: str, args: tuple[Any, ...], end: float | None
    ) -> Reply | None:
        """Make a call over an existing channel; if it fails, it goes on as any other call. Returns
        None when nothing was sent."""
        binding = self.binding
        channel = self._pool.channel_now(binding.slot) if self._is_shared(op, args) else None
        if channel is None:
            return None
        command, lane = binding.commands[op], channel.lane
        if not channel.connection.knows(command.script.sha):
            self._pool.take_in(channel)
            return None
        self.granted = None
        channel.together, self._together = self._together, None
        number = command.number(lane)
        if op in TAKING:
            self.taken = TakeBack((lane, number))
        packed = command.pack(args, channel.id, lane, number)
        limit = None if end is None else patience(end, None)
        reply: Any
        try:
            reply = await channel.exchange(packed, limit, command.script.once)
        except OSError as error:
            reply = error
        except BaseException as error:
            self.lose(channel, error)
            raise
        if command.script.bare:
            reply = [DONE, reply] if type(reply) is bytes else read_bare(reply)
        if type(reply) is not list or reply[0] in CAME_AGAIN:
            return await self.call_once(
                op, args, end, Attempt(channel, channel.lane, number, reply)
            )
        self._note_reply(op, channel, reply)
        _check(op, reply)
        return reply

    async def call_once(
        self, op: str, args: tuple[Any, ...], end: float | None, attempt: Attempt | None = None
    ) -> Reply:
        reply = await super().call_once(op, args, end, attempt)
        _check(op, reply)
        return reply

    async def _evaluate(self, wire: Carrier, op: str, args: tuple[Any, ...], *more: Any) -> Reply:
        binding = self.binding
        if isinstance(wire, Channel) and (op in binding.scripts or op in FORWARDS):
            shared, script = wire.connection, binding.scripts[op]
            if not shared.knows(script.sha):
                _, limit, *_ = more
                async with shared.learning(script.sha, limit):
                    return await super()._evaluate(wire, op, args, *more)
        return await super()._evaluate(wire, op, args, *more)

    def _is_shared(self, op: str, args: tuple[Any, ...]) -> bool:
        if op not in self.binding.shareable:
            if op not in self.binding.shareable_at_once:
                return False
            mode, turn = args[-3:-1]
            if mode not in (TRY, NOW) or turn != FIRST:  # a call that waits, or holds a role
                return False
        size = 0
        for arg in args:
            if type(arg) is bytes:
                size += len(arg)
        return size < LARGE

    def _idle_wire(self, op: str, args: tuple[Any, ...]) -> Carrier | None:
        if not self._is_shared(op, args):
            return super()._idle_wire(op, args)
        channel = self._pool.channel_now(self.binding.slot)
        if channel is not None:
            channel.together, self._together = self._together, None
        return channel

    async def _new_wire(self, op: str, args: tuple[Any, ...], limit: float | None) -> Carrier:
        if self._is_shared(op, args):
            return await self._pool.lend(self.binding.slot, limit)
        return await super()._new_wire(op, args, limit)

    def _note_reply(self, op: str, wire: Carrier, reply: Reply) -> None:
        if op in TAKING:
            if reply[0] != DONE:
                self.taken = None
            elif isinstance(wire, Channel):
                before, self._kept = self._kept, wire
                if before is not None:
                    self._pool.take_in(before)
                return
        super()._note_reply(op, wire, reply)

    # Cancellation

    async def _put_back(self, request: Request, waits: bool) -> Taken | None:
        """Give taken items back that no caller has, or return them if the task has them after all.
        Waits for a broker that answers. No more calls are made in that lane."""
        taken, self.taken = self.taken, None
        if taken is None:
            return None
        if self._kept is not None:
            self._pool.drop(self._kept)
            self._kept.close()
        if self._wire is not None and self._wire.lane is taken.call[0]:
            self._leave_lane(self._wire)
        undone = UndoneTake(request, partial(self._take_back_later, taken))
        await self._pool.in_background(undone.run(), LAST_SECONDS if waits else 0.0)
        handed_out = undone.end()
        if handed_out is not None:
            self.taken = taken  # until the caller has the items
        return handed_out

    async def _take_back(
        self, wire: Carrier, lane: Lane, number: bytes, if_open: bool, limit: float | None
    ) -> Reply:
        # The loop may end before a reply is there that the server does not have the script, and
        # then the items would be lost: so the script is sent with its first call.
        script = self.binding.scripts["take_back"]
        if isinstance(wire, Channel) and not wire.connection.knows(script.sha):
            wire.connection.send_unread(pack_command(("SCRIPT", "LOAD", script.source)))
        return await super()._take_back(wire, lane, number, if_open, limit)

    async def _take_back_later(self, taken: TakeBack, if_open: bool) -> Any:
        # In a session of its own: this one may end before.
        session = LoopSession(self.binding, self._pool, self._begin)
        with suppress(OSError, PressureError):  # the caller gets the cancellation instead
            return await session.call(
                taken._replace(if_open=if_open), time.monotonic() + _TO_GO_BACK
            )


def _give_back(
    begin: Callable[[], BlockingSession],
    ticket: str | None,
    taken: TakeBack | None,
    wish: tuple[bytes, str] | None,
) -> None:
    """Give back what one operation held; ``begin`` makes a session for a thread."""
    session = begin()
    try:
        if taken is not None:
            session.call(taken, ONE_TRY)
        if ticket is not None:
            session.script("free_roles", (ticket, session.binding.options.lease), ONE_TRY)
        if wish is not None and (bells := bells_in(session.script("wake_another", wish, ONE_TRY))):
            session.script("ring", bells, ONE_TRY)
    except PressureError:  # the end of its lease gives it back
        pass
    finally:
        session.end()


def _check(op: str, reply: Reply) -> None:
    """Raise a postponed cancellation after a call that took something, so that the items go back,
    or after a call that did nothing."""
    if op in TAKING or op in CLAIMING or reply[:1] != [DONE]:
        postponed.check()
