"""One connection: redis-py connects it, and from then on it is pack, send, read.

Two kinds with the same methods: one blocks its thread, one suspends its asyncio task. The
methods of the blocking one are coroutines that never suspend, so that all that is built on wires
is written once; :func:`finish` runs such a coroutine without an event loop.
"""

from __future__ import annotations

import asyncio
import collections
import os
import socket
import ssl
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import hiredis
import redis.asyncio.connection
import redis.connection
from redis.exceptions import RedisError

from ...hidden import without_frames
from ..put_off import put_off, settled
from . import connecting
from .address import RedisAddress
from .lanes import Lane
from .packing import pack_command
from .unheard import Unheard

T = TypeVar("T")

#: What can be sent.
Buffer = bytes | memoryview

_READ_SIZE = 1 << 16
#: Nearly every reply is smaller, and room for more takes longer to make.
_FIRST_READ_SIZE = 1 << 12
#: So many commands whose replies are large are under way at a time.
_AHEAD = 4
#: Seconds for a reply that came long ago, if it did.
_SOON = 0.001
_EMPTY = b"*0\r\n"
_NOTHING = object()


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("a coroutine over blocking wires was suspended")


class Node:
    """One server, and the connections to it that are idle."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.idle: collections.deque[Wire] = collections.deque()

    def hang_up(self) -> None:
        """Close what is idle."""
        while self.idle:
            try:
                self.idle.pop().close()
            except IndexError:  # another thread was faster
                return


class Carrier(ABC):
    """What calls go over, one after the other, in a lane: a connection, or a channel of a shared
    one. OSError means that it is lost."""

    id: int  #: the connection's, at the server
    node: Node  #: where this leads
    lane: Lane
    confirms: bool  #: whether the server is known to confirm what is durable

    async def request(
        self, *command: Any, timeout: float | None = None, settles: bool = False
    ) -> Any:
        """Send a command and wait for its reply. An error reply is returned, not raised.

        After ``timeout`` seconds without a reply TimeoutError is raised; this is then lost. An
        asyncio task that is cancelled meanwhile raises CancelledError; where the command
        ``settles`` something, as of :func:`.put_off.settled`.
        """
        return await self.exchange(pack_command(command), timeout, settles)

    @abstractmethod
    async def exchange(self, packed: bytes, timeout: float | None, settles: bool = False) -> Any:
        """:meth:`request` for a command that is packed already."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more is sent over it, nor heard."""

    def give_up(self) -> None:
        """The same; and what nobody has waited for is done."""
        self.close()


class Wire(Carrier):
    """A connected socket, used by one operation at a time."""

    _module: Any  #: redis-py's, with the connection classes of this kind

    def __init__(self, connection: Any) -> None:
        self._connection = connection  # redis-py's; it closes the socket when it is collected
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self._refusal: Any = _NOTHING
        #: The last call, if nobody has waited for its reply.
        self.unheard: Unheard | None = None
        self.id = 0
        self.role = (
            ""  #: the server's, when it was connected: master, replica, or none for a sentinel
        )
        self.confirms = False
        self.node: Node  #: from the route that opened it
        self.lane = Lane()
        self.used_at = time.monotonic()

    @classmethod
    async def open(cls, address: RedisAddress, timeout: float | None = None) -> Wire:
        """Connect. Each step blocks at most ``timeout`` seconds, and at most 5 (which
        ``?socket_connect_timeout=`` changes).

        Raises BrokerUnavailable, BrokerError for a refused login, UnsupportedServerError.
        """
        before = sys.exc_info()[1]
        try:
            connection = connecting.make(address, cls._module, timeout)
            wire = await cls._connect(connection)
            return await wire._greet(address, connection.socket_connect_timeout)
        except (RedisError, OSError) as error:
            found = connecting.unavailable(address, error, before)
            raise found from without_frames(error)

    async def _greet(self, address: RedisAddress, timeout: float) -> Wire:
        try:
            reply = info = await self._say_hello(timeout)
            if connecting.is_unknown(reply):
                info = await self.request("INFO", "server", timeout=timeout)
            greeting = connecting.check_greeting(reply, address, info)
        except BaseException:
            self.close()
            raise
        self.id, self.role = int(greeting[b"id"]), greeting.get(b"role", b"").decode()
        return self

    async def _say_hello(self, timeout: float) -> Any:
        try:
            return await self.request("HELLO", "2", timeout=timeout)
        except TimeoutError:
            raise TimeoutError(
                f"it accepts the connection, and then says nothing for {timeout:g} s"
            ) from None
        except connecting.NoReply:
            raise
        except OSError as error:
            raise ConnectionError(f"it does not answer the first command: {error}") from error

    async def exchange(self, packed: bytes, timeout: float | None, settles: bool = False) -> Any:
        """:meth:`request` for a command that is packed already."""
        await self._send(packed)
        return await self.read(timeout)

    async def exchange_large(
        self, commands: Sequence[Sequence[Buffer]], timeout: float | None
    ) -> list[Any]:
        """:meth:`request` for packed commands in pieces, which are not put together. All are sent
        before the first reply is read. Of a server that refuses one, and hangs up, that is all."""
        try:
            for pieces in commands:
                for piece in pieces:
                    await self._write(piece)
        except OSError:
            reply = None
            while not isinstance(reply, Exception):  # those before it may have been done
                reply = await self.read(1.0)
            return [reply]
        return [await self.read(timeout) for _ in commands]

    async def exchange_into(
        self,
        commands: Sequence[bytes],
        rooms: Sequence[Sequence[memoryview]],
        timeout: float | None,
    ) -> list[Any]:
        """:meth:`request` for packed commands whose replies are to be strings, each as long as one
        of the ``rooms``, where it is written. For each that is, the list has True, and else the
        reply. Some commands are under way while a reply is read."""
        if self.unheard is not None:
            await self._hear(self.unheard, timeout)
        replies: list[Any] = []
        received = b""
        for number, room in enumerate(rooms):
            ahead = commands[:_AHEAD] if number == 0 else commands[number + _AHEAD - 1 :][:1]
            if ahead:
                await self._send(b"".join(ahead))
            if self._refusal is not _NOTHING:
                return [*replies, await self.read(timeout)]
            if all(reply is True for reply in replies):
                reply, received = await self._read_into(room, received, timeout)
            else:  # the reader has what was received
                reply = await self.read(timeout)
            replies.append(reply)
        return replies

    async def _read_into(
        self, room: Sequence[memoryview], received: bytes, timeout: float | None
    ) -> tuple[Any, bytes]:
        """One reply, of which so much was received; and what was received of those behind it,
        unless the reader has that."""
        head = b"$%d\r\n" % sum(view.nbytes for view in room)
        while len(received) < len(head) and head.startswith(received):
            received += self._not_end(await self._receive(timeout))
        if not received.startswith(head):
            reply = self._next_reply(received)
            return (await self.read(timeout) if reply is _NOTHING else reply), b""
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
        """Send an empty command, which has no reply. A server that waits for events ten times a
        second looks at its clock when this comes: what is over by then, it ends."""
        await self._write(_EMPTY)

    async def _send(self, packed: bytes) -> None:
        try:
            await self._write(packed)
        except OSError:
            await self._hear_refusal()

    async def _hear_refusal(self) -> None:
        """A server that refuses a command for its size says so before it hangs up: the refusal,
        if there is one, is what the next read answers."""
        self._refusal = await self.read(1.0)

    async def read(self, timeout: float | None) -> Any:
        """The next reply; TimeoutError after ``timeout`` seconds, and it may still come later."""
        if self.unheard is not None:
            await self._hear(self.unheard, timeout)
        return await self._read(timeout)

    async def _hear(self, unheard: Unheard, timeout: float | None) -> None:
        """Read the reply to a call that nobody has waited for."""
        try:
            outcome = await self._read(timeout)
        except TimeoutError:
            raise
        except OSError as error:
            self.unheard = None
            unheard.settle(error)
            raise
        self.unheard = None
        unheard.settle(outcome)

    def give_up(self) -> None:
        """As of :class:`Carrier`: a server never does a call that it has not begun when the
        connection is closed, so an unheard one is made again over another."""
        self.close()
        unheard, self.unheard = self.unheard, None
        if unheard is not None:
            unheard.settle(ConnectionError("the connection was closed before its reply came"))

    async def _read(self, timeout: float | None) -> Any:
        reply, self._refusal = self._refusal, _NOTHING
        if reply is _NOTHING:
            reply = self._reader.gets()
        while reply is _NOTHING:
            reply = self._next_reply(await self._receive(timeout))
        return reply

    def _next_reply(self, received: bytes) -> Any:
        """The reply that is complete with what was received, or ``_NOTHING``."""
        self._reader.feed(self._not_end(received))
        try:
            return self._reader.gets()
        except hiredis.ProtocolError:
            raise connecting.NoReply(received) from None

    @staticmethod
    def _not_end(received: bytes) -> bytes:
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
    async def _receive(self, timeout: float | None) -> bytes: ...

    @abstractmethod
    async def _receive_into(self, room: memoryview, timeout: float | None) -> int:
        """Receive a part of what fills ``room``; returns how many bytes came."""

    @abstractmethod
    def is_stale(self) -> bool:
        """Whether the server hung up, or sent what nobody asked for, while this was idle."""

    @abstractmethod
    def close(self) -> None:
        """Close the socket. In a forked child this leaves the parent's connection alone."""


class BlockingWire(Wire):
    """For a thread: each method blocks it."""

    _module = redis.connection

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._socket: socket.socket = connection._sock  # redis-py has no public name for it

    @classmethod
    async def _connect(cls, connection: Any) -> Wire:
        connection.connect()
        wire = cls(connection)
        wire._socket.settimeout(None)
        return wire

    def exchange_now(self, packed: bytes) -> Any:
        """:meth:`exchange` without a time limit, in as few steps as possible: nearly every
        operation is one of these. Nothing is sent of what is empty: :meth:`send_now` has sent."""
        try:
            if packed:
                self._socket.sendall(packed)
        except OSError:
            finish(self._hear_refusal())
            return finish(self.read(None))
        if self.unheard is not None:
            finish(self._hear(self.unheard, None))
        reader, size = self._reader, _FIRST_READ_SIZE
        reply = reader.gets()  # it may have come with one that nobody waited for
        try:
            while reply is _NOTHING:
                received = self._socket.recv(size)
                reader.feed(received or self._not_end(received))
                reply, size = reader.gets(), _READ_SIZE
        except hiredis.ProtocolError as error:
            raise ConnectionError(f"what came is no reply: {error}") from None
        return reply

    def send_now(self, packed: bytes) -> None:
        """Send a packed command, so small that this does not block; ``exchange_now(b"")`` has its
        reply."""
        try:
            self._socket.sendall(packed)
        except OSError as error:
            unheard, self.unheard = self.unheard, None
            if unheard is not None:
                unheard.settle(error)
            raise

    async def _write(self, data: Buffer) -> None:
        self._socket.sendall(data)

    async def _receive(self, timeout: float | None) -> bytes:
        if timeout is None:
            return self._socket.recv(_READ_SIZE)
        self._socket.settimeout(max(timeout, 0.001))
        try:
            return self._socket.recv(_READ_SIZE)
        finally:
            self._socket.settimeout(None)

    async def _receive_into(self, room: memoryview, timeout: float | None) -> int:
        self._socket.settimeout(None if timeout is None else max(timeout, 0.001))
        try:
            received = self._socket.recv_into(room)
        finally:
            self._socket.settimeout(None)
        if not received:
            raise ConnectionResetError("the server closed the connection")
        return received

    def is_stale(self) -> bool:
        if self.unheard is not None:
            try:
                finish(self._hear(self.unheard, _SOON))
            except TimeoutError:
                return False  # who uses it will see
            except OSError:
                return True
        try:
            self._socket.setblocking(False)
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            self._socket.setblocking(True)
            return False
        except OSError:
            pass
        return True

    def close(self) -> None:
        self._connection.disconnect()


class AsyncWire(Wire):
    """For a task of one event loop: each method suspends it."""

    _module = redis.asyncio.connection

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        # redis-py has no public names for its streams; it must not close them either.
        self._input: asyncio.StreamReader = connection._reader
        self._output: asyncio.StreamWriter = connection._writer
        connection._reader = connection._writer = None
        self._reading: asyncio.Task[bytes] | None = None

    @classmethod
    async def _connect(cls, connection: Any) -> Wire:
        # In a task of its own: redis-py loses a cancellation that comes while it logs in.
        connecting = asyncio.ensure_future(connection.connect())
        try:
            await asyncio.wait({connecting})
        except asyncio.CancelledError:
            connecting.cancel()
            await asyncio.wait({connecting})
            if not connecting.cancelled() and not connecting.exception():
                await connection.disconnect(nowait=True)
            raise
        connecting.result()
        return cls(connection)

    async def exchange(self, packed: bytes, timeout: float | None, settles: bool = False) -> Any:
        put_off.check()
        await self._send(packed)
        if settles:
            return await settled(self.read(timeout), self.read, timeout)
        return await self.read(timeout)

    @property
    def transport(self) -> asyncio.WriteTransport:
        """What is below it, for one who speaks over it from now on, and keeps this as long: it
        closes the transport when it is collected."""
        return self._output.transport

    def after_fork(self) -> None:
        """In the child: the connection is the parent's alone. Its transport is told nothing, since
        what that tells the event loop's selector it would tell the parent's."""
        if self.transport.is_closing():
            return
        descriptor = self.transport.get_extra_info("socket").fileno()
        if descriptor >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, descriptor, inheritable=False)
            os.close(nothing)

    async def _write(self, data: Buffer) -> None:
        self._output.write(data)
        await self._output.drain()

    async def _receive(self, timeout: float | None, most: int = _READ_SIZE) -> bytes:
        if self._reading is None:
            if timeout is None:
                return await self._input.read(most)
            # A task of its own, which a timeout or a cancellation leaves as it is: whatever
            # happens at the same moment, what it reads is not lost.
            self._reading = asyncio.ensure_future(self._input.read(most))
        done, _ = await asyncio.wait({self._reading}, timeout=timeout)
        if not done:
            raise TimeoutError("no reply in time")
        reading, self._reading = self._reading, None
        return reading.result()

    async def _receive_into(self, room: memoryview, timeout: float | None) -> int:
        received = self._not_end(await self._receive(timeout, room.nbytes))
        room[: len(received)] = received
        return len(received)

    def is_stale(self) -> bool:
        return self._input.at_eof()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._output.transport.abort()
