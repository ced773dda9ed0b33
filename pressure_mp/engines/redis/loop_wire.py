"""A connection for the tasks of one event loop: each method suspends the task."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import redis.asyncio.connection

from ...off_loop import prepare_loop
from ..cancelled_calls import postponed, reply_first
from ..silence import SILENCE, unconfirmed
from .silence import SilenceTimer
from .wire import READ_SIZE, Buffer, Wire


class LoopWire(Wire):
    """For a task of one event loop: each method suspends it."""

    _module = redis.asyncio.connection

    def __init__(self, connection: Any) -> None:
        super().__init__()
        # redis-py has no public names for its streams; it must not close them either.
        self._input: asyncio.StreamReader = connection._reader
        self._output: asyncio.StreamWriter = connection._writer
        connection._reader = connection._writer = None
        self._reading: asyncio.Task[bytes] | None = None
        self._silence = SilenceTimer(self, self._output.transport.abort, lambda: True)

    @classmethod
    async def _connect(cls, connection: Any) -> Wire:
        # Connect in a task of its own: redis-py loses a cancellation that comes while it logs in.
        prepare_loop()
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

    async def exchange(self, packed: bytes, timeout: float | None, has_effect: bool = False) -> Any:
        postponed.check()
        await self._send(packed)
        if has_effect:
            return await reply_first(self.read(timeout), self.read, timeout)
        return await self.read(timeout)

    @property
    def transport(self) -> asyncio.WriteTransport:
        """The transport, for a protocol that takes it over. It must keep this wire, which closes
        the transport when it is collected."""
        return self._output.transport

    def after_fork(self) -> None:
        """Leave the connection to the parent, in a forked child. The transport is not closed, since
        it would change the selector of the parent's event loop. A closing transport may still have
        its socket."""
        own = self.transport.get_extra_info("socket")
        descriptor = -1 if own is None else own.fileno()
        if descriptor >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, descriptor, inheritable=False)
            os.close(nothing)

    async def _write(self, data: Buffer) -> None:
        self._output.write(data)
        await self._output.drain()

    def unsent(self) -> int:
        own = self.transport.get_extra_info("socket")
        return self.transport.get_write_buffer_size() + unconfirmed(own.fileno())

    async def _receive(self, timeout: float | None, most: int = READ_SIZE) -> bytes:
        if timeout is not None and timeout <= SILENCE:
            return await self._receive_in_time(timeout, most)
        self._silence.begin()
        try:
            return await self._receive_in_time(timeout, most)
        finally:
            self._silence.end()

    async def _receive_in_time(self, timeout: float | None, most: int) -> bytes:
        if self._reading is None:
            if timeout is None:
                return await self._input.read(most)
            # Read in a task of its own, which a timeout or a cancellation does not end: so no bytes
            # are lost, whatever happens at the same moment.
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
        reading = self._input.read(1)
        try:
            reading.send(None)
        except (StopIteration, OSError):  # the end, an error, or bytes that no call asked for
            return True
        reading.close()  # nothing had come
        return self.transport.is_closing()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._output.transport.abort()
