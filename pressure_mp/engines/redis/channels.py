"""One connection for the quick calls of an event loop: each goes over a channel of it.

Commands are written in the order of the calls, and the server replies in that order, so the next
reply is always for the call that waits longest. No task reads: the callback of the transport gives
each reply to its call.

Calls for the same are made together, in one transaction, so that no other call comes in between.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import hiredis

from ..cancelled_calls import postponed, reply_first
from .connecting import NoReply
from .lanes import Lane
from .loop_wire import LoopWire
from .packing import pack_command
from .silence import SilenceTimer
from .wire import NOTHING, Carrier

_MULTI, _EXEC = pack_command(("MULTI",)), pack_command(("EXEC",))


class _Slot:
    """Receives one reply, for the call that sent the command, if it still waits."""

    __slots__ = ("future", "outcome")

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self.future = future
        #: The reply, or an OSError, that came when the future was cancelled and its task did not
        #: know that yet.
        self.outcome: Any = NOTHING

    @property
    def is_abandoned(self) -> bool:
        """Whether no call waits for the reply any longer."""
        return self.future.done()

    def fill(self, reply: Any) -> None:
        if self.future.done():
            self.outcome = reply
        else:
            self.future.set_result(reply)

    def fail(self, error: OSError) -> None:
        if self.future.done():
            self.outcome = error
        else:
            self.future.set_exception(error)


class _Transaction:
    """Receives the replies to one transaction: to its begin, to each of its commands, to its
    end."""

    def __init__(self, slots: list[_Slot]) -> None:
        self._slots = slots
        self._replies: list[Any] = []

    @property
    def is_abandoned(self) -> bool:
        return all(slot.is_abandoned for slot in self._slots)

    def fill(self, reply: Any) -> None:
        """Receive the next of these replies. Only the last one counts, unless a command was
        refused."""
        self._replies.append(reply)
        if len(self._replies) < len(self._slots) + 2:
            return
        begun, *replies, done = self._replies
        if isinstance(begun, Exception):
            pass  # the user may not use transactions: each command was done by itself
        elif isinstance(done, Exception):  # nothing was done
            why = next((reply for reply in replies if isinstance(reply, Exception)), done)
            replies = [why] * len(replies)
        else:
            replies = done
        for slot, reply in zip(self._slots, replies, strict=True):
            slot.fill(reply)

    def fail(self, error: OSError) -> None:
        for slot in self._slots:
            slot.fail(error)


class SharedConnection(asyncio.Protocol):
    """The connection that the channels of an event loop share. After an error, or when it was
    silent for too long, no further call goes over it."""

    def __init__(self, wire: LoopWire) -> None:
        self.id = wire.id
        self.node = wire.node
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(notEnoughData=NOTHING)
        self._slots: collections.deque[_Slot | _Transaction] = collections.deque()
        self._batch: list[bytes] = []
        #: Commands that are sent together when this round of the loop is over, by their keys.
        self._together: dict[Hashable, list[tuple[bytes, _Slot]]] = {}
        self._is_closed = False
        self._is_silent = False
        #: The scripts that the server is known to have, and the scripts whose first call is under
        #: way.
        self._known: set[str] = set()
        self._learned: dict[str, asyncio.Future[None]] = {}
        #: Exists while the transport has more to send than it should keep, and is done when it has
        #: less.
        self._room: asyncio.Future[None] | None = None
        self._wire, self._transport = wire, wire.transport
        self._silence = SilenceTimer(wire, self._fall_silent_for_good, lambda: bool(self._slots))
        # The wire has received all bytes until now; this receives all bytes from now on.
        is_stale = wire.is_stale()
        self._transport.set_protocol(self)
        if is_stale:
            self._break("the server closed the connection, or sent a reply without a request")

    @property
    def is_usable(self) -> bool:
        """Whether a new call may go over it."""
        return not (self._is_closed or self._is_silent)

    def knows(self, sha: str) -> bool:
        """Tell whether a script was called over it."""
        return sha in self._known

    @asynccontextmanager
    async def learning(self, sha: str, timeout: float | None) -> AsyncIterator[None]:
        """Make the first call of a script; other calls of it wait for its end. So the script is
        sent to the server only once, and no later call is served before an earlier one."""
        while sha in self._learned:
            done, _ = await asyncio.wait({self._learned[sha]}, timeout=timeout)
            if not done:
                raise TimeoutError("no reply in time")
        if sha in self._known:
            yield
            return
        learned = self._learned[sha] = self._loop.create_future()
        try:
            yield
            self._known.add(sha)
        finally:
            del self._learned[sha]
            learned.set_result(None)

    @property
    def is_crowded(self) -> bool:
        """Whether the transport has more to send than it should keep."""
        return self._room is not None

    async def until_there_is_room(self) -> None:
        """Wait as long as it is crowded."""
        while self._room is not None:
            await asyncio.wait({self._room})

    def send(self, packed: bytes) -> _Slot:
        """Send a command; return the slot of its reply. Commands of the same round of the loop are
        sent together."""
        if self._is_closed:
            raise ConnectionResetError("the connection was lost before the call was sent")
        slot = _Slot(self._loop.create_future())
        self._write(packed)
        self._slots.append(slot)
        return slot

    def send_unread(self, packed: bytes) -> None:
        """Send a command whose reply no call reads."""
        self.send(packed).future.cancel()

    def send_together(self, key: Hashable, packed: bytes) -> _Slot:
        """Send a command in one transaction with all commands of this key in the same round of the
        loop."""
        if self._is_closed:
            raise ConnectionResetError("the connection was lost before the call was sent")
        slot = _Slot(self._loop.create_future())
        if key not in self._together:
            self._together[key] = []
            self._loop.call_soon(self._send_transaction, key)
        self._together[key].append((packed, slot))
        return slot

    def _send_transaction(self, key: Hashable) -> None:
        commands = self._together.pop(key, [])
        slots = [slot for _, slot in commands]
        if len(commands) == 1:
            self._write(commands[0][0])
            self._slots += slots
        elif commands:
            self._write(b"".join((_MULTI, *(packed for packed, _ in commands), _EXEC)))
            self._slots += [_Transaction(slots)] * (len(slots) + 2)

    def _write(self, packed: bytes) -> None:
        if not self._slots:
            self._silence.begin()
            self._transport.write(packed)
            return
        if not self._batch:
            self._loop.call_soon(self._send_batch)
        self._batch.append(packed)

    def _send_batch(self) -> None:
        batch, self._batch = self._batch, []
        if not self._is_closed:
            self._transport.write(b"".join(batch))

    def fall_silent(self) -> None:
        """Note that a reply did not come in time: outstanding calls may still get theirs, but the
        next calls go over another connection."""
        self._is_silent = True
        self._close_if_left()

    def _fall_silent_for_good(self) -> None:
        self._break("the server answers over other connections, but not over this one")

    def _close_if_left(self) -> None:
        if self._is_silent and all(slot.is_abandoned for slot in self._slots):
            self.close()

    def close(self) -> None:
        """Close the socket. Calls that wait for a reply raise that the connection is lost."""
        self._fail("the connection was closed")
        self._transport.abort()

    def _fail(self, what: str) -> None:
        self._is_closed = True
        self._silence.end()
        self._batch.clear()
        while self._slots:
            self._slots.popleft().fail(ConnectionResetError(what))
        together, self._together = self._together, {}
        for commands in together.values():
            for _, slot in commands:
                slot.fail(ConnectionResetError(what))
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        reader, slots = self._reader, self._slots
        self._silence.begin()
        reader.feed(data)
        try:
            while (reply := reader.gets()) is not NOTHING:
                slots.popleft().fill(reply)
        except hiredis.ProtocolError:
            self._break(str(NoReply(data)))
        except IndexError:
            self._break("the server sent a reply without a request")
        if self._is_silent:
            self._close_if_left()

    def _break(self, why: str) -> None:
        self._fail(why)
        self._transport.abort()

    def eof_received(self) -> None:
        """Break the connection: no reply comes any more. Otherwise the transport would first send
        all that it has, however long the server takes to read that."""
        self._break("the server closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the connection was lost: {exc}" if exc else "the server closed the connection")

    def pause_writing(self) -> None:
        if self._room is None:
            self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)


class Channel(Carrier):
    """One operation's part in a shared connection, with a lane of its own. Closing it does not
    close the connection: an outstanding reply is dropped when it comes."""

    def __init__(self, connection: SharedConnection, lane: Lane) -> None:
        self.id = connection.id
        self.node = connection.node
        self.lane = lane
        self.confirms = False
        self.is_closed = False
        self.connection = connection
        #: The key of the transaction of the next command, if that has several commands.
        self.together: Hashable = None

    async def exchange(self, packed: bytes, timeout: float | None, has_effect: bool = False) -> Any:
        postponed.check()
        connection = self.connection
        if connection.is_crowded:
            await connection.until_there_is_room()
        key, self.together = self.together, None
        slot = connection.send(packed) if key is None else connection.send_together(key, packed)
        reply: Awaitable[Any] = slot.future
        if timeout is not None:
            reply = self._reply(slot, timeout, self._fall_silent)
        if has_effect:
            return await reply_first(reply, partial(self._late_reply, slot), timeout)
        return await reply

    @staticmethod
    async def _reply(slot: _Slot, timeout: float, give_up: Callable[[_Slot], None]) -> Any:
        timer = asyncio.get_running_loop().call_later(timeout, give_up, slot)
        try:
            return await slot.future
        finally:
            timer.cancel()

    def _fall_silent(self, slot: _Slot) -> None:
        if not slot.future.done():
            _give_up(slot)
            self.connection.fall_silent()

    async def _late_reply(self, slot: _Slot, timeout: float) -> Any:
        """Wait for the reply for a cancelled task: it may have come at the same moment."""
        if not slot.future.cancelled():
            return slot.future.result()
        if slot.outcome is NOTHING:
            slot.future = asyncio.get_running_loop().create_future()
            return await self._reply(slot, timeout, _give_up)
        if isinstance(slot.outcome, OSError):
            raise slot.outcome
        return slot.outcome

    def close(self) -> None:
        self.is_closed = True


def _give_up(slot: _Slot) -> None:
    """Note that the reply is not waited for any longer."""
    if not slot.future.done():
        slot.future.set_exception(TimeoutError("no reply in time"))
