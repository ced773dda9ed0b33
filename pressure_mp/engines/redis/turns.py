"""Waiting for a role, and with a role for an item or for space."""

from __future__ import annotations

import time
from typing import Any

from ...exceptions import IncompleteQueueError, PressureError
from ...identity.client import client_id, receiver, ticket
from ..contract.replies import InUse, Later
from ..contract.session import ONE_TRY, TICK
from .binding import FastPath
from .caller import Caller
from .inspection import as_text, is_lost
from .keys import FIFO
from .role_checks import WaitingOperation
from .roles import GRACE, check_roles, put_back_never_held, wake
from .statuses import BUSY, DONE, EMPTY, FIRST, FULL, NOW, RESERVED, TRY, WAIT, Reply

#: The statuses after which another try may succeed; the signal to wait for follows them.
_LATER = (EMPTY, FULL, BUSY)

_ROLES = (b"producer", b"consumer")

#: Seconds of a role holder's first wait. A close that comes before the wait begins wakes no client.
FIRST_WAIT = 0.05
#: Seconds after which a waiting operation makes its call again, whatever its process's renewals
#: see.
LONGEST_WAIT = 60.0


class Turns:
    """One operation that takes its turns at a role, call by call.

    To each call it adds the caller: client id, ticket, mode (wait, try or now), the turn, and the
    lease in milliseconds. A call in mode ``now`` is served at that moment or not at all, and gives
    back a role that was held while waiting. With ``tries`` the operation makes one call without
    waiting, which is served only if it leaves something for each client that waits. With
    ``receives`` the wake-up brings the item, and no other client takes an item until the operation
    has removed it.
    """

    def __init__(self, caller: Caller, tries: bool = False, receives: bool = False) -> None:
        self._caller = caller
        self._receives = receives
        self._tries = tries
        self._lease = caller.binding.options.lease
        self._ids = (client_id(), receiver() if receives else ticket())
        self._safe = 0.0  # the end of the caller's role, on the monotonic clock
        self._waits = WaitingOperation(self._ids[1], self._lease)
        self._later: Reply | None = None  # the last reply, while no change is known
        self._called = 0.0
        self._turn = FIRST
        self._signal = ""
        self._has_role = False  # it waits with the role
        self._in_line = ""
        self._role_waits = 0
        self._checks = False  # whether to check the roles before the next wait
        self._waiting: FastPath | None = None
        self._alone = False  # no other client can be in the way
        self._is_given = False  # the last wait ended with the item
        self._lost_since: float | None = None
        self._may_hold = False

    async def call(
        self,
        op: str,
        args: tuple[Any, ...],
        waits: bool,
        end: float | None,
        fast: FastPath | None = None,
    ) -> Reply:
        """Make one try. The ``waiting`` script of a ``fast`` path is called before the full call,
        as long as no other client has the role. Returns the last reply again while the renewals of
        the process see that a call would change nothing."""
        if waits and self._later is not None and self._is_renewed:
            return self._later
        if self._turn == FIRST:
            self._waiting = fast.waiting if fast is not None else None
            self._alone = waits and self._waiting is not None and self._waiting.is_open
        self._alone = self._alone and waits
        self._may_hold = waits or self._turn != FIRST
        try:
            reply = await self._try(op, args, WAIT if waits else TRY if self._tries else NOW, end)
            if reply[0] == BUSY and not (waits or self._tries) and reply[2] == RESERVED:
                reply = await self._outwait(op, args, end)
            if reply[0] in _LATER and waits:
                await self._prepare_to_wait(reply, end)
        except PressureError:
            # A call before the first wait that raised an error of this package holds nothing.
            self._may_hold = self._turn != FIRST
            raise
        if fast is not None and reply[0] in _LATER and waits:
            fast.close()
        elif fast is not None and self._turn == FIRST:
            fast.note(reply[0] == DONE)
        self._may_hold = reply[0] in _LATER and waits
        self._later = reply if self._may_hold else None
        if not self._may_hold:
            self._leave()
            self._caller.waiter = None  # the next request has its own turns
        return reply

    @property
    def _is_renewed(self) -> bool:
        return self._waits.is_renewed and time.monotonic() < self._called + LONGEST_WAIT

    def _leave(self) -> None:
        self._caller.binding.role_checks.leave(self._waits)

    async def _script(self, op: str, args: tuple[Any, ...], end: float | None) -> Reply:
        return await self._caller.script(op, args, end)

    async def _try(self, op: str, args: tuple[Any, ...], mode: bytes, end: float | None) -> Reply:
        waiting, script = self._waiting, self._script
        self._waits.is_due, self._called = False, time.monotonic()
        if self._alone and waiting is not None:
            short, reply = (*self._ids, self._lease), None
            if self._is_given:
                safe = max(self._safe, self._waits.safe)
                reply = await self._caller.accept(waiting.op, short, safe)
            self._safe = time.monotonic() + self._lease / 3000
            if reply is None:
                reply = await script(waiting.op, (*short, b""), end)
            self._alone = waiting.did(reply)
            if self._alone:
                return reply
        self._safe = time.monotonic() + self._lease / 3000
        reply = await script(op, (*args, *self._ids, mode, self._turn, self._lease), end)
        if waiting is not None:
            waiting.note(reply[0] != BUSY)
        return reply

    async def _prepare_to_wait(self, reply: Reply, end: float | None) -> None:
        self._signal = reply[1].decode()
        self._has_role = reply[0] != BUSY
        if reply[0] == BUSY:
            await wake(self._caller, reply[3:])
            await self._search_token(reply, end)
        self._turn = "again"

    async def _outwait(self, op: str, args: tuple[Any, ...], end: float | None) -> Reply:
        """Wait in line, in a call that may not wait, until a reader gives the role back, or reports
        the items that it handed out."""
        latest = time.monotonic() + GRACE
        self._may_hold = True
        while True:
            reply = await self._try(op, args, WAIT, end)
            if reply[0] not in _LATER:
                return reply
            await self._prepare_to_wait(reply, end)
            self._checks = True
            self._caller.binding.role_checks.note(0.0)  # it may have ended
            await self.wait(InUse("producer"), max(latest - time.monotonic(), 0.0))
            reply = await self._try(op, args, NOW, end)
            if time.monotonic() >= latest or reply[0] != BUSY or reply[2] != RESERVED:
                return reply

    async def wait(self, later: Later, timeout: float | None) -> bool:
        """Wait for the role, or with it for an item or for space."""
        end = None if timeout is None else time.monotonic() + timeout
        soon = (await check_roles(self._caller, end)) if self._checks else None
        self._caller.binding.role_checks.stay(self._waits)
        if self._has_role:
            # Make the next call in time to renew the lease.
            wait, lasts = FIRST_WAIT, 0.0
            if self._role_waits:
                wait = min(TICK, self._lease / 3000)
            if self._is_renewed:
                left = self._called + LONGEST_WAIT - time.monotonic()
                lasts = left if timeout is None else min(left, timeout)
            limit = _earliest(timeout, wait, soon)
            woken = await self._caller.park(self._signal, limit, lasts=lasts)
            self._checks = not woken and self._role_waits > 0
            self._role_waits += 1
            # With the role, no other client can be in the way. Without a wake-up the operation
            # makes the full call, which checks for more than an item.
            self._alone = woken and self._waiting is not None
            self._is_given = woken and self._receives
            self._in_line = ""
            if not self._caller.is_parked:  # a client that closes the queue ends the wait
                self._later = None
            return woken
        # A check would end the place of an operation that only now comes into the line.
        limit = _earliest(timeout, soon if self._in_line == self._signal else None)
        woken = await self._caller.park(self._signal, limit)
        if woken:
            self._later = None
            self._turn, self._in_line, self._checks = self._signal, "", False
        else:
            self._in_line, self._checks = self._signal, True
        return woken

    @property
    def ticket(self) -> str | None:
        """The ticket of a role, or a place in line, that the server may have noted; None if there
        is none."""
        return self._ids[1] if self._may_hold else None

    async def end(self) -> None:
        """Give back a role that is held, or was granted, whatever ended the wait."""
        self._leave()
        if not self._may_hold:
            return
        self._may_hold = False
        try:
            await self._caller.script("release", (self._ids[1], self._turn, self._lease), ONE_TRY)
        except PressureError:
            pass  # the end of its lease gives it back

    async def _search_token(self, reply: Reply, end: float | None) -> None:
        """Raise IncompleteQueueError when the token of the role that a busy reply names has been in
        no list for a lease, and a client of this package had it last.

        A client that takes a role writes its name at once into the key for the last holder. So if
        that key has a client of this package, or does not exist, no client has the token. If it
        does not exist, the token is put back.
        """
        since, self._lost_since = self._lost_since, None
        _, role, whose, *_ = reply
        if self._turn == FIRST or whose != b"foreign":
            return
        seen = await self._caller.script("inspect", (0,), end)
        if seen[0] != DONE:
            return
        ends = {name: told[:2] for name, told in zip(_ROLES, seen[6:8], strict=True)}
        never_held = [name for name, told in ends.items() if told == [b"", b"foreign"]]
        await put_back_never_held(self._caller, never_held, end)
        last, place = map(as_text, ends[role])
        if not (last and is_lost(last, place)):
            return
        now = time.monotonic()
        self._lost_since = since or now
        if now - self._lost_since > self._lease / 1000:
            raise self._incomplete(role.decode())

    def _incomplete(self, role: str) -> IncompleteQueueError:
        binding = self._caller.binding
        advice = "delete the queue"
        if binding.discipline == FIFO:
            advice = f"PressureQueue.unlock({role!r}) puts it back, or delete the queue after that"
        return IncompleteQueueError(
            f"queue {binding.name!r} has lost keys: no client has its {role} role, but "
            f"`:{role}_free` is missing: the server or another program removed it, and items may "
            f"be missing too. {advice}"
        )


class UntilFinished:
    """The wait until all items are done, which holds nothing."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.signal = ""
        self._checks = False

    async def wait(self, later: Later, timeout: float | None) -> bool:
        """Wait for the signal of :class:`~..contract.queues.Join`."""
        end = None if timeout is None else time.monotonic() + timeout
        soon = (await check_roles(self._caller, end)) if self._checks else None
        woken = await self._caller.park(self.signal, _earliest(timeout, soon))
        self._checks = not woken
        return woken

    async def end(self) -> None:
        """Do nothing: nothing is held."""


def _earliest(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)
