"""A connection: redis-py connects it, and this module sends packed commands and reads replies.

Two kinds have the same methods: ``blocking_wire.py`` has the kind that blocks its thread,
``loop_wire.py`` the kind that suspends its asyncio task. The methods of the blocking kind are
coroutines that never suspend, so that all code above wires is written once; :func:`finish` runs
such a coroutine without an event loop.
"""

from __future__ import annotations

import collections
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import hiredis
from redis.exceptions import RedisError

from ...exceptions import PressureError
from ...hidden import without_frames
from . import connecting
from .address import RedisAddress
from .lanes import Lane
from .packing import pack_command
from .silence import Health

T = TypeVar("T")

#: What can be sent.
Buffer = bytes | memoryview

READ_SIZE = 1 << 16
#: The most commands with large replies that are under way at a time.
_AHEAD = 4
_EMPTY = b"*0\r\n"
#: Means that no reply is complete yet.
NOTHING = object()


class Node:
    """One server, and the idle connections to it."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.idle: collections.deque[Wire] = collections.deque()
        self.health = Health()

    def hang_up(self, kept: int = 0) -> None:
        """Close the idle connections, except so many that were used last."""
        while len(self.idle) > kept:
            try:
                self.idle.popleft().close()
            except IndexError:  # another thread was faster
                return


#: Finishes a call whose reply was not waited for: the next read from its connection reads that
#: first, and gives it the reply, or an OSError if there is none. Raises nothing.
UnreadCall = Callable[[Any], None]


class Carrier(ABC):
    """A connection, or a channel of a shared connection, over which calls go one after the other,
    in a lane. OSError means that it is lost."""

    id: int  #: the connection's, at the server
    node: Node  #: where this leads
    lane: Lane
    confirms: bool  #: whether the server is known to confirm durable writes

    async def request(
        self, *command: Any, timeout: float | None = None, has_effect: bool = False
    ) -> Any:
        """Send a command and wait for its reply. An error reply is returned, not raised.

        Raises TimeoutError after ``timeout`` seconds without a reply; the connection is then lost.
        An asyncio task that is cancelled meanwhile raises CancelledError; if the command
        ``has_effect``, it gets the reply first, see :func:`.cancelled_calls.reply_first`.
        """
        return await self.exchange(pack_command(command), timeout, has_effect)

    @abstractmethod
    async def exchange(self, packed: bytes, timeout: float | None, has_effect: bool = False) -> Any:
        """Do what :meth:`request` does, for a packed command."""

    @abstractmethod
    def close(self) -> None:
        """Close it: nothing more is sent or received."""

    def give_up(self) -> None:
        """Close it, and finish an unread call."""
        self.close()


class Wire(Carrier):
    """A connected socket, used by one operation at a time."""

    _module: Any  #: the module of redis-py with the connection classes of this kind

    def __init__(self) -> None:
        self._reader = hiredis.Reader(notEnoughData=NOTHING)
        self._refusal: Any = NOTHING
        #: The last call, if its reply was not waited for.
        self.unread: UnreadCall | None = None
        self.id = 0
        #: The role of the server at the time of connecting: master, replica, or none.
        self.role = ""
        self.confirms = False
        self.told: Any = None  #: the reply to a command that was sent with the greeting
        self.node: Node  #: set by the route that opened it
        self.lane = Lane()
        self.used_at = time.monotonic()

    @classmethod
    async def open(
        cls, address: RedisAddress, timeout: float | None = None, asked: bytes = b""
    ) -> Wire:
        """Connect. Each step blocks at most ``timeout`` seconds, and at most 5 (which
        ``?socket_connect_timeout=`` changes). The reply to a packed command that is ``asked`` in
        the same round trip is in ``told``.

        Raises BrokerUnavailable, BrokerError for a refused login, UnsupportedServerError.
        """
        before = sys.exc_info()[1]
        try:
            connection = connecting.make(address, cls._module, timeout)
            wire = await cls._connect(connection)
            return await wire._greet(address, connection.socket_connect_timeout, asked)
        except PressureError:
            raise
        except (RedisError, OSError) as error:
            found = connecting.unavailable(address, error, before)
            raise found from without_frames(error)

    async def _greet(self, address: RedisAddress, timeout: float, asked: bytes) -> Wire:
        try:
            reply = await self._say_hello(timeout, asked)
            is_unknown = connecting.is_unknown(reply)
            if not is_unknown:
                greeting = connecting.check_greeting(reply, address)
            if asked:
                self.told = await self.read(timeout)
            if is_unknown:
                info = await self.request("INFO", "server", timeout=timeout)
                greeting = connecting.check_greeting(reply, address, info)
        except BaseException:
            self.close()
            raise
        self.id, self.role = int(greeting[b"id"]), greeting.get(b"role", b"").decode()
        return self

    async def _say_hello(self, timeout: float, asked: bytes) -> Any:
        try:
            await self.send("HELLO", "2", behind=asked)
            return await self.read(timeout)
        except TimeoutError:
            raise TimeoutError(
                f"it accepts the connection, and does not answer for {timeout:g} s"
            ) from None
        except connecting.NoReply:
            raise
        except OSError as error:
            raise ConnectionError(f"it does not answer the first command: {error}") from error

    async def exchange(self, packed: bytes, timeout: float | None, has_effect: bool = False) -> Any:
        await self._send(packed)
        return await self.read(timeout)

    async def exchange_large(
        self, commands: Sequence[Sequence[Buffer]], timeout: float | None
    ) -> list[Any]:
        """Send packed commands in pieces, without joining them, all of them before the first reply
        is read, and return the replies. From a server that refuses one and hangs up, return only
        that reply."""
        try:
            for pieces in commands:
                for piece in pieces:
                    await self._write(piece)
        except OSError:
            reply = None
            while not isinstance(reply, Exception):  # earlier commands may have been done
                reply = await self.read(1.0)
            return [reply]
        return [await self.read(timeout) for _ in commands]

    async def exchange_into(
        self,
        commands: Sequence[bytes],
        rooms: Sequence[Sequence[memoryview]],
        timeout: float | None,
    ) -> list[Any]:
        """Send packed commands whose replies are strings, and write each into one of the ``rooms``,
        which has its length. Returns a list with True for each such reply, and all other replies as
        they are. Some commands are under way while a reply is read."""
        if self.unread is not None:
            await self._read_unread(timeout)
        replies: list[Any] = []
        received = b""
        for number, room in enumerate(rooms):
            ahead = commands[:_AHEAD] if number == 0 else commands[number + _AHEAD - 1 :][:1]
            if ahead:
                await self._send(b"".join(ahead))
            if self._refusal is not NOTHING:
                return [*replies, await self.read(timeout)]
            if all(reply is True for reply in replies):
                reply, received = await self._read_into(room, received, timeout)
            else:  # the reader has the received bytes
                reply = await self.read(timeout)
            replies.append(reply)
        return replies

    async def _read_into(
        self, room: Sequence[memoryview], received: bytes, timeout: float | None
    ) -> tuple[Any, bytes]:
        """Read one reply, whose beginning is ``received``. Returns the reply, and the received
        bytes behind it, unless the reader has these."""
        head = b"$%d\r\n" % sum(view.nbytes for view in room)
        while len(received) < len(head) and head.startswith(received):
            received += self._not_end(await self._receive(timeout))
        if not received.startswith(head):
            reply = self._next_reply(received)
            return (await self.read(timeout) if reply is NOTHING else reply), b""
        rest = memoryview(received)[len(head) :]
        for view in room:
            begin = min(len(rest), view.nbytes)
            view[:begin], rest = rest[:begin], rest[begin:]
            while begin < view.nbytes:
                begin += await self._receive_into(view[begin:], timeout)
        received = bytes(rest)
        while len(received) < len(b"\r\n"):
            received += self._not_end(await self._receive(timeout))
        return True, received[len(b"\r\n") :]

    async def send(self, *command: Any, behind: bytes = b"") -> None:
        """Send a command, and a packed one behind it; :meth:`read` has their replies in turn."""
        await self._send(pack_command(command) + behind)

    async def send_nothing(self) -> None:
        """Send an empty command, which has no reply. The server, which checks its clock ten times a
        second, checks it when this comes, and ends the waits that are over."""
        await self._write(_EMPTY)

    async def _send(self, packed: bytes) -> None:
        try:
            await self._write(packed)
        except OSError:
            await self._read_refusal()

    async def _read_refusal(self) -> None:
        """Read the refusal of a server that hangs up on a command because of its size: the next
        read returns it."""
        self._refusal = await self.read(1.0)

    async def read(self, timeout: float | None) -> Any:
        """Return the next reply. Raises TimeoutError after ``timeout`` seconds; the reply may still
        come later."""
        if self.unread is not None:
            await self._read_unread(timeout)
        return await self._read(timeout)

    async def _read_unread(self, timeout: float | None) -> None:
        """Read the reply to the unread call, and finish that."""
        try:
            outcome = await self._read(timeout)
        except TimeoutError:
            raise
        except OSError as error:
            self._finish_unread(error)
            raise
        self._finish_unread(outcome)

    def _finish_unread(self, outcome: Any) -> None:
        unread, self.unread = self.unread, None
        if unread is not None:
            unread(outcome)

    def give_up(self) -> None:
        """Close the connection, and make an unread call again over another one: a server never does
        a call that it has not begun when its connection is closed."""
        self.close()
        self._finish_unread(ConnectionError("the connection was closed before its reply came"))

    async def is_lost(self, since: float) -> bool:
        """Tell whether the server answers over another connection to a command that was sent after
        the last bytes came over this one. Blocks for 5 s to connect there, and for 5 s until it
        answers."""
        if not self.id:  # it is not greeted, and so not in use
            return False
        node = self.node
        return await node.health.has_answered(type(self).open, node.address, since)

    async def _read(self, timeout: float | None) -> Any:
        reply, self._refusal = self._refusal, NOTHING
        if reply is NOTHING:
            reply = self._reader.gets()
        while reply is NOTHING:
            reply = self._next_reply(await self._receive(timeout))
        return reply

    def _next_reply(self, received: bytes) -> Any:
        """Return the reply that is complete with the received bytes, or ``NOTHING``."""
        self._reader.feed(self._not_end(received))
        try:
            return self._reader.gets()
        except hiredis.ProtocolError:
            raise connecting.NoReply(received) from None

    @staticmethod
    def _not_end(received: T) -> T:
        if not received:
            raise ConnectionResetError("the server closed the connection")
        return received

    @classmethod
    @abstractmethod
    async def _connect(cls, connection: Any) -> Wire:
        """Connect and log in with redis-py's ``connection``."""

    @abstractmethod
    async def _write(self, data: Buffer) -> None: ...

    @abstractmethod
    def unsent(self) -> int:
        """Count the written bytes that the server's host has not confirmed. While these become
        fewer, a large call is on its way over a slow link."""

    @abstractmethod
    async def _receive(self, timeout: float | None) -> bytes: ...

    @abstractmethod
    async def _receive_into(self, room: memoryview, timeout: float | None) -> int:
        """Receive a part of the bytes that fill ``room``; return how many bytes came."""

    @abstractmethod
    def is_stale(self) -> bool:
        """Tell whether the server hung up, or sent bytes without a command, while this was idle."""

    @abstractmethod
    def close(self) -> None:
        """Close the socket. In a forked child this leaves the parent's connection alone."""
