"""One operation's dealings with the server: at most one connection that parks, one beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...effects import TICK, Reply
from ...exceptions import BrokerError, PressureError
from .errors import translate
from .pool import Pool
from .wire import Wire, finish

if TYPE_CHECKING:
    from .engine import RedisBinding

#: Seconds within which a wait that was ended on the server has its reply; else it is lost.
_LAST_WORD = 5.0
#: Milliseconds for a grant of the queue's other role, if it is first seen when one is given back.
_LEASE = 5000


class RedisSession:
    """For asyncio; and, through :class:`BlockingSession`, for threads."""

    def __init__(self, binding: RedisBinding, pool: Pool) -> None:
        self._binding = binding
        self._pool = pool
        self._wire: Wire | None = None
        self._parked: str | None = None

    async def call(self, op: str, args: tuple[Any, ...]) -> Reply:
        if op == "release":
            return await self._pool.uninterrupted(self._call(op, args))
        return await self._call(op, args)

    async def _call(self, op: str, args: tuple[Any, ...]) -> Reply:
        wire = self._wire
        if wire is None:
            wire = self._wire = await self._pool.checkout()
        if self._parked:
            async with self._pool.borrowed() as beside:
                return await self._evaluate(beside, op, args, wire.id)
        try:
            return await self._evaluate(wire, op, args, wire.id)
        except BrokerError:  # an error reply: the connection is as good as before
            raise
        except BaseException as error:
            self._discard()
            raise self._pool.translate(error) from error

    async def _evaluate(self, wire: Wire, op: str, args: tuple[Any, ...], conn: int) -> Reply:
        if op == "wake":
            return [await wire.request("CLIENT", "UNBLOCK", waiter) for waiter in args]
        head, wants_connection = self._binding.command(op)
        if wants_connection:
            args = (*args, conn)
        reply = await wire.request(*head, *args)
        if type(reply) is list:
            return reply
        if str(reply).startswith("NOSCRIPT"):
            await wire.request("SCRIPT", "LOAD", self._binding.scripts[op].source)
            reply = await wire.request(*head, *args)
            if type(reply) is list:
                return reply
        raise await translate(reply, self._binding, op, args, wire)

    async def park(self, signal: str, timeout: float | None) -> bool:
        if self._parked not in (None, signal):
            await self._abandon()
        patience = TICK if timeout is None else min(timeout, TICK)
        try:
            if self._wire is None:
                self._wire = await self._pool.checkout()
            if self._parked is None:
                self._parked = signal
                command, patience = self._binding.waiting(signal, timeout)
                await self._wire.send(*command)
            reply = await self._wire.read(patience)
        except TimeoutError:
            return False
        except OSError as error:
            self._discard()
            raise self._pool.translate(error) from error
        except BaseException:  # cancelled, or KeyboardInterrupt: a granted turn goes back first
            await self._abandon()
            raise
        self._parked = None
        return reply is not None and not isinstance(reply, Exception)

    async def _abandon(self) -> None:
        """End an outstanding wait; a role that was granted meanwhile goes back."""
        await self._pool.uninterrupted(self._end_wait())

    async def _end_wait(self) -> None:
        wire, signal = self._wire, self._parked
        if wire is None or signal is None:
            return
        try:
            async with self._pool.borrowed() as beside:
                await beside.request("CLIENT", "UNBLOCK", wire.id)
                granted = await wire.read(_LAST_WORD)
                self._parked = None
                if granted is not None and self._binding.is_line(signal):
                    await self._evaluate(beside, "release", ("", signal, _LEASE), beside.id)
        except (OSError, PressureError):
            self._discard()
        except BaseException:
            self._discard()
            raise

    def _discard(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = self._parked = None

    async def end(self) -> None:
        if self._parked:
            await self._abandon()
        if self._wire is not None:
            self._pool.checkin(self._wire)
            self._wire = None


class BlockingSession:
    """For a thread."""

    def __init__(self, binding: RedisBinding, pool: Pool) -> None:
        self._session = RedisSession(binding, pool)

    def call(self, op: str, args: tuple[Any, ...]) -> Reply:
        return finish(self._session.call(op, args))

    def park(self, signal: str, timeout: float | None) -> bool:
        return finish(self._session.park(signal, timeout))

    def end(self) -> None:
        finish(self._session.end())
