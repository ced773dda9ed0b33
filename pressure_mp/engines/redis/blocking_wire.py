"""A connection for a thread: each method blocks the thread."""

from __future__ import annotations

import _socket
import select
import socket
import ssl
import struct
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import hiredis
import redis.connection

from ...identity.descriptors import Descriptor
from ..blocking_coroutines import finish
from ..silence import GRACE, SILENCE, unconfirmed
from .silence import PAUSE
from .wire import NOTHING, READ_SIZE, Buffer, Wire

T = TypeVar("T")

#: Nearly every reply is smaller, and room for more takes longer to make.
_FIRST_READ_SIZE = 1 << 12
#: Seconds for a reply that must have come already.
_SOON = 0.001
#: ``SILENCE`` as seconds and microseconds, for the system.
_SILENT = struct.pack("ll", int(SILENCE), 0)
#: Weak references whose callbacks close the connections of collected wires.
_there: set[weakref.ref[BlockingWire]] = set()


def _see_to(wire: BlockingWire, close: Callable[[], None]) -> None:
    """Close the wire's connection when the wire is collected. Keeps the connection until then: in a
    cycle the collector may come to the socket before the object that closes it."""

    def end(wire: weakref.ref[BlockingWire]) -> None:
        _there.discard(wire)
        close()

    _there.add(weakref.ref(wire, end))


def _until_silent(own: socket.socket) -> Callable[[int], bytes]:
    """Return a function that receives from a socket, and raises BlockingIOError when nothing comes
    for ``SILENCE`` seconds. The system measures the time, except for a socket of TLS, or a socket
    that suspends a coroutine."""
    if isinstance(own, _socket.socket) and not isinstance(own, ssl.SSLSocket):
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _SILENT)
        return own.recv

    def receive(size: int) -> bytes:
        own.settimeout(SILENCE)
        try:
            return own.recv(size)
        except TimeoutError as error:
            if error.errno is not None:
                raise
            raise BlockingIOError("no byte came") from None
        finally:
            own.settimeout(None)

    return receive


def _close(connection: Any, descriptor: Descriptor) -> None:
    """Close redis-py's connection, unless the program closed its descriptor: it may have a file of
    its own under that number."""
    if connection._sock is not None and not descriptor.is_open:
        connection._sock.detach()
    connection.disconnect()


class BlockingWire(Wire):
    """For a thread: each method blocks it."""

    _module = redis.connection

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self._socket: socket.socket = connection._sock  # redis-py has no public name for it
        #: Raises BlockingIOError when nothing comes for ``SILENCE`` seconds: then the server is
        #: asked.
        self._recv: Callable[[int], bytes] = self._socket.recv
        #: Close it; may be called again.
        self._close = partial(_close, connection, Descriptor(self._socket.fileno()))
        _see_to(self, self._close)

    @classmethod
    async def _connect(cls, connection: Any) -> Wire:
        connection.connect()
        wire = cls(connection)
        wire._socket.settimeout(None)
        wire._recv = _until_silent(wire._socket)
        return wire

    def exchange_now(self, packed: bytes) -> Any:
        """Do what :meth:`exchange` does without a time limit, in as few steps as possible: nearly
        every operation is one of these. With an empty ``packed`` it only reads, after
        :meth:`send_now`."""
        try:
            if packed:
                self._socket.sendall(packed)
        except OSError:
            finish(self._read_refusal())
            return finish(self.read(None))
        if self.unread is not None:
            finish(self._read_unread(None))
        reader, size = self._reader, _FIRST_READ_SIZE
        reply = reader.gets()  # it may have come with the reply of an unread call
        try:
            while reply is NOTHING:
                received = self._recv(size)
                reader.feed(received or self._not_end(received))
                reply, size = reader.gets(), READ_SIZE
        except BlockingIOError:
            finish(self._ask(time.monotonic() - SILENCE))
            return finish(self._read(None))
        except hiredis.ProtocolError as error:
            raise ConnectionError(f"the server sent bytes that are no reply: {error}") from None
        return reply

    def send_now(self, packed: bytes) -> None:
        """Send a packed command, so small that this does not block; ``exchange_now(b"")`` has its
        reply."""
        try:
            self._socket.sendall(packed)
        except OSError as error:
            self._finish_unread(error)
            raise

    async def _write(self, data: Buffer) -> None:
        self._socket.sendall(data)

    def unsent(self) -> int:
        return unconfirmed(self._socket.fileno())

    async def _receive(self, timeout: float | None) -> bytes:
        return await self._within(timeout, lambda: self._socket.recv(READ_SIZE))

    async def _receive_into(self, room: memoryview, timeout: float | None) -> int:
        return self._not_end(await self._within(timeout, lambda: self._socket.recv_into(room)))

    async def _within(self, timeout: float | None, receive: Callable[[], T]) -> T:
        """Receive bytes within ``timeout`` seconds. Raises TimeoutError; ConnectionError when the
        server answers over another connection meanwhile, and not over this one."""
        since = time.monotonic()
        end = None if timeout is None else since + timeout
        silence = SILENCE
        while True:
            left = None if end is None else max(end - time.monotonic(), 0.001)
            if left is not None and left <= silence:
                return self._timed(left, receive)
            try:
                return self._timed(silence, receive)
            except TimeoutError as error:
                if error.errno is not None:  # an error of the system: the connection is lost
                    raise
            await self._ask(since)
            silence = PAUSE

    def _timed(self, seconds: float, receive: Callable[[], T]) -> T:
        self._socket.settimeout(seconds)
        try:
            return receive()
        finally:
            self._socket.settimeout(None)

    async def _ask(self, since: float) -> None:
        """Ask the server, as nothing came since then: raise ConnectionError if it answers over
        another connection, and this one still neither receives nor sends."""
        before = self.unsent()
        if await self.is_lost(since):
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            if not poll.poll(GRACE * 1000) and self.unsent() >= before:
                raise ConnectionResetError(
                    "the server answers over other connections, but not over this one"
                )

    def is_stale(self) -> bool:
        if self.unread is not None:
            try:
                finish(self._read_unread(_SOON))
            except TimeoutError:
                return False  # its next user will see
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
        self._close()
