"""A connection for a thread, which each method blocks."""

from __future__ import annotations

import socket
import ssl
import weakref
from typing import Any

import hiredis
import redis.connection

from ..finishing import finish
from .wire import NOTHING, READ_SIZE, Buffer, Wire

#: Nearly every reply is smaller, and room for more takes longer to make.
_FIRST_READ_SIZE = 1 << 12
#: Seconds for a reply that came long ago, if it did.
_SOON = 0.001
#: They close the connections of wires that are collected.
_there: set[weakref.ref[BlockingWire]] = set()


def _see_to(wire: BlockingWire, connection: Any) -> None:
    """Close redis-py's connection when the wire is collected. It is kept until then: in a cycle the
    collector may come to the socket before it comes to what closes that."""

    def end(wire: weakref.ref[BlockingWire]) -> None:
        _there.discard(wire)
        connection.disconnect()

    _there.add(weakref.ref(wire, end))


class BlockingWire(Wire):
    """For a thread: each method blocks it."""

    _module = redis.connection

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self._socket: socket.socket = connection._sock  # redis-py has no public name for it
        self._connection = connection  # redis-py's
        _see_to(self, connection)

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
            finish(self._hear(None))
        reader, size = self._reader, _FIRST_READ_SIZE
        reply = reader.gets()  # it may have come with one that nobody waited for
        try:
            while reply is NOTHING:
                received = self._socket.recv(size)
                reader.feed(received or self._not_end(received))
                reply, size = reader.gets(), READ_SIZE
        except hiredis.ProtocolError as error:
            raise ConnectionError(
                f"the server sent something that is not a reply: {error}"
            ) from None
        return reply

    def send_now(self, packed: bytes) -> None:
        """Send a packed command, so small that this does not block; ``exchange_now(b"")`` has its
        reply."""
        try:
            self._socket.sendall(packed)
        except OSError as error:
            self._settle_unheard(error)
            raise

    async def _write(self, data: Buffer) -> None:
        self._socket.sendall(data)

    async def _receive(self, timeout: float | None) -> bytes:
        if timeout is None:
            return self._socket.recv(READ_SIZE)
        self._socket.settimeout(max(timeout, 0.001))
        try:
            return self._socket.recv(READ_SIZE)
        finally:
            self._socket.settimeout(None)

    async def _receive_into(self, room: memoryview, timeout: float | None) -> int:
        self._socket.settimeout(None if timeout is None else max(timeout, 0.001))
        try:
            return self._not_end(self._socket.recv_into(room))
        finally:
            self._socket.settimeout(None)

    def is_stale(self) -> bool:
        if self.unheard is not None:
            try:
                finish(self._hear(_SOON))
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
