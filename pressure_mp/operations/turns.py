"""The one loop of every operation that may have to wait."""

from __future__ import annotations

from typing import Any

from ..effects import (
    BUSY,
    DECLINED,
    DONE,
    EMPTY,
    FULL,
    INCOMPLETE,
    NOW,
    ONE_TRY,
    TICK,
    UNFINISHED,
    WAIT,
    Call,
    Now,
    Operation,
    Park,
    Reply,
)
from ..exceptions import PressureError
from ..identity import client_id, ticket
from .diagnosis import as_text, is_lost
from .roles import free_roles

#: The statuses after which trying again may help; a signal to park on follows them.
_LATER = (EMPTY, FULL, BUSY, UNFINISHED)

#: Seconds of a role holder's first wait. A close that finds it not yet parked wakes nobody.
_FIRST_WATCH = 0.05


def deadline(block: bool, timeout: float | None) -> Operation[float | None]:
    """When to stop waiting, on the driver's clock; None for never."""
    if not block or timeout is None:
        return None
    now: float = yield Now()
    return now + timeout


def time_left(end: float | None) -> Operation[float | None]:
    """Seconds until then, 0 when it is over; None when there is no end."""
    if end is None:
        return None
    now: float = yield Now()
    return max(end - now, 0.0)


class Shortcut:
    """A smaller call that does the same when it can be done at once, and else does nothing.

    Its arguments are the first few of the operation's, and the client id. After it was declined
    it is not tried again until some full calls were served at once, one after the other: whoever
    often has to wait makes one call less.

    ``waiting`` is another one, for a caller that may wait: that also takes the role to wait with.
    Its arguments are client id, ticket, and lease in milliseconds.
    """

    #: So many. One that is declined takes about as long as some full calls take longer.
    PROBATION = 5

    def __init__(self, op: str, takes: int, waiting: Shortcut | None = None) -> None:
        self.op = op
        self.takes = takes
        self.waiting = waiting
        self.is_open = True
        self._missing = 0

    def close(self) -> None:
        """The last call, short or full, was not served at once."""
        self.is_open = False
        self._missing = self.PROBATION

    def note(self, served: bool) -> None:
        """A full call was served at once, or not."""
        if not served:
            self.close()
            return
        self._missing -= 1
        self.is_open = self._missing <= 0

    def did(self, reply: Reply) -> bool:
        """Whether the smaller call did it; else the full one is to be made."""
        if reply[0] == DECLINED:
            self.close()
            return False
        return True


def take_turns(
    op: str,
    args: tuple[Any, ...],
    block: bool,
    timeout: float | None,
    lease: int,
    shortcut: Shortcut | None = None,
) -> Operation[Reply]:
    """Call ``op`` until it is done, refused, or the time is up; answers the last reply.

    To each call it adds who calls: client id, ticket, mode (wait or now), the turn, and the
    lease in milliseconds. The last call before it gives up is in mode ``now``: it takes what is
    there at that moment, and gives back a role that was held while waiting.

    A ``shortcut`` is tried first; and its ``waiting``, where it has one, before the full call, as
    long as nobody else has the role.
    """
    if timeout is not None and timeout <= 0:  # the same as not to wait at all
        block, timeout = False, None
    end = (yield from deadline(block, timeout)) if timeout is not None else None
    reply: Reply
    if shortcut is not None and shortcut.is_open:
        reply = yield Call(shortcut.op, (*args[: shortcut.takes], client_id()), end)
        if shortcut.did(reply):
            return reply
    who = (client_id(), ticket())
    mode, turn, in_line = (WAIT if block else NOW), "first", ""
    watches, looks = 0, False
    waiting = shortcut.waiting if shortcut is not None else None
    alone = block and waiting is not None and waiting.is_open
    lost_since = None
    try:
        while True:
            if waiting is not None and alone:
                reply = yield Call(waiting.op, (*who, lease), end)
                alone = waiting.did(reply)
            if not alone:
                reply = yield Call(op, (*args, *who, mode, turn, lease), end)
                if waiting is not None:
                    waiting.note(reply[0] != BUSY)
            if reply[0] not in _LATER or mode is NOW:
                if shortcut is not None and turn == "first":
                    shortcut.note(reply[0] == DONE)
                return reply
            if shortcut is not None:
                shortcut.close()
            signal = reply[1].decode()
            if reply[0] == BUSY:
                yield from wake(reply[3:])
                lost_since = yield from _look_for_token(reply, turn, lost_since, end)
                if lost_since and (yield Now()) - lost_since > lease / 1000:
                    yield from _let_go(who[1], turn, lease)
                    return [INCOMPLETE, reply[1]]
            turn = "again"
            limit = None
            if end is not None:
                now: float = yield Now()
                limit = end - now
                if limit <= 0:
                    mode, alone = NOW, False
                    continue
            soon = (yield from free_roles(lease, end)) if looks else None
            if reply[0] != BUSY:
                # The role is ours meanwhile: look again in time to renew the lease.
                watch = min(TICK, lease / 3000) if watches else _FIRST_WATCH
                woken = yield Park(signal, _earliest(limit, watch, soon))
                looks = not woken and watches > 0
                watches += 1
                # With the role, nobody else can be in the way. Who was not woken makes the full
                # call, which looks for more than an item.
                alone = woken and waiting is not None
                in_line = ""
                continue
            # One who only now comes into the line would have to leave it for a look.
            woken = yield Park(signal, _earliest(limit, soon if in_line == signal else None))
            turn, in_line, looks = (signal, "", False) if woken else (turn, signal, True)
    except GeneratorExit:
        raise
    except BaseException as error:
        # A role held while waiting goes back, whatever ended the wait. When a call before the
        # first wait failed with an error of ours, nothing was held.
        if turn != "first" or not isinstance(error, PressureError):
            yield from _let_go(who[1], turn, lease)
        raise


def _look_for_token(
    reply: Reply, turn: str, since: float | None, end: float | None
) -> Operation[float | None]:
    """Since when the token of the role that a busy reply names is in no list, though no client is
    known to have the role; None while it is not so.

    A client of another make that takes a role says so at once, in the key that names who had it
    last. So when that names a client of this package, or nobody, the token is not with anyone.
    """
    _, role, whose, *_ = reply
    if turn == "first" or whose != b"foreign":
        return None
    seen: Reply = yield Call("inspect", (0,), end)
    if seen[0] != DONE:
        return None
    last, place = map(as_text, seen[6 if role == b"producer" else 7][:2])
    if not is_lost(last, place):
        return None
    now: float = yield Now()
    return since or now


def _earliest(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def wake(holders: list[bytes]) -> Operation[None]:
    """Wake those whose role a reply asks for, by the names of their connections."""
    named = tuple(holder for holder in holders if holder)
    if named:
        yield Call("wake", named)


def _let_go(ticket: str, turn: str, lease: int) -> Operation[None]:
    try:
        yield Call("release", (ticket, turn, lease), ONE_TRY)
    except PressureError:
        pass  # no broker to give it back to; there its lease ends it


def until_finished(timeout: float | None, lease: int) -> Operation[Reply]:
    """Call ``join`` until nothing is unfinished or the time is up; answers the last reply."""
    end = yield from deadline(True, timeout)
    looks = False
    while True:
        reply: Reply = yield Call("join", (), end)
        if reply[0] not in _LATER:
            return reply
        limit = None
        if end is not None:
            now: float = yield Now()
            limit = end - now
            if limit <= 0:
                return reply
        soon = (yield from free_roles(lease, end)) if looks else None
        looks = not (yield Park(reply[1].decode(), _earliest(limit, soon)))
