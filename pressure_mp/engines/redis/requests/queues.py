"""Requests that open, inspect and end a queue."""

from __future__ import annotations

from typing import Any

from ...contract import queues
from ...contract.items import Purge, PurgeReply
from ...contract.replies import InUse, Outcome, Unfinished
from .. import inspection
from ..caller import Caller, does
from ..one_script import plain
from ..roles import free_roles, read_counts, wake
from ..statuses import BUSY, DONE, EXISTS, MISMATCH, MISSING, UNFINISHED, Reply, outcome
from ..turns import Turns, UntilFinished

#: The format version of the keys of a queue.
FORMAT = "1"


@does(queues.Open)
async def open_(caller: Caller, request: queues.Open, end: float | None) -> queues.OpenReply:
    discipline = caller.binding.discipline
    how, bound, user = request
    noted = caller.binding.note_arguments(user)
    reply = await caller.script("open", (how.value, bound, discipline, FORMAT, user, *noted), end)
    if reply[0] == EXISTS:
        return queues.Existing(int(reply[1]))
    if reply[0] == MISMATCH:
        return mismatch(reply, discipline)
    if reply[0] == MISSING:
        return Outcome.MISSING
    caller.binding.server.notes_of_host.hear(noted, reply[3])
    return queues.Opened(int(reply[1]))


def mismatch(reply: Reply, discipline: str) -> queues.Mismatch:
    """Read the reply to a call that opens a queue under a name in use for another kind."""
    what = reply[1].decode()
    wanted = FORMAT if what == "format" else discipline
    return queues.Mismatch(what, inspection.as_text(reply[2]), wanted)


does(queues.Exists)(plain("exists", lambda request, reply: bool(reply[1])))
does(queues.GetDiscipline)(plain("kind", lambda request, reply: inspection.as_text(reply[1])))
does(queues.Enlist)(plain("enlist"))
does(queues.GetUsers)(plain("users", lambda request, reply: [user.decode() for user in reply[1]]))
does(queues.Dismiss)(
    plain("dismiss", lambda request, reply: int(reply[1]), lambda binding, request: request.users)
)


@does(queues.GetLength)
async def get_length(
    caller: Caller, request: queues.GetLength, end: float | None
) -> queues.GetLengthReply:
    reply = await read_counts(caller, "length", end)
    if reply[0] == MISSING:
        return Outcome.MISSING
    return int(reply[1])


does(queues.IsClosed)(plain("closed", lambda request, reply: bool(reply[1])))


@does(queues.GetStats)
async def get_stats(
    caller: Caller, request: queues.GetStats, end: float | None
) -> queues.GetStatsReply:
    reply = await read_counts(caller, "stats", end)
    if reply[0] == MISSING:
        return Outcome.MISSING
    *numbers, producer, consumer = reply[1:]
    bound, length, closed, put, put_bytes, got, got_bytes, *rest = map(int, numbers)
    unfinished, rejected, in_flight = rest
    return queues.Stats(
        length=length,
        maxsize=bound,
        closed=bool(closed),
        produced_messages=put,
        produced_bytes=put_bytes,
        consumed_messages=got,
        consumed_bytes=got_bytes,
        producer=producer and inspection.as_text(producer),
        consumer=consumer and inspection.as_text(consumer),
        unfinished=unfinished,
        rejected=rejected,
        in_flight=in_flight,
    )


does(queues.SetBound)(plain("set_bound"))
does(queues.CountDone)(plain("task_done"))


@does(queues.Join)
async def join(caller: Caller, request: queues.Join, end: float | None) -> queues.JoinReply:
    reply = await caller.script("join", (), end)
    if reply[0] != UNFINISHED:
        return outcome(reply)
    waiter = caller.waiter
    if not isinstance(waiter, UntilFinished):
        waiter = caller.waiter = UntilFinished(caller)
    waiter.signal = reply[1].decode()
    return Unfinished()


@does(queues.Close)
async def close(caller: Caller, request: queues.Close, end: float | None) -> queues.CloseReply:
    args = (int(request.once), int(request.immediate))
    found: queues.CloseReply = await _end_in_turn(caller, "close", args, request.waits, end)
    return found


@does(queues.Delete)
async def delete(caller: Caller, request: queues.Delete, end: float | None) -> queues.DeleteReply:
    found: queues.DeleteReply = await _end_in_turn(caller, "delete", (), request.waits, end)
    return found


async def _end_in_turn(
    caller: Caller, op: str, args: tuple[Any, ...], waits: bool, end: float | None
) -> Any:
    """Call a script that shuts the queue down or deletes it, and wake the holders of the roles."""
    reply = await turns(caller).call(op, args, waits, end)
    if reply[0] == BUSY:
        return InUse(reply[1].decode())
    if reply[0] == DONE:
        await wake(caller, reply[1:])
    return outcome(reply)


@does(Purge)
async def purge(caller: Caller, request: Purge, end: float | None) -> PurgeReply:
    reply = await turns(caller).call("purge", (), request.waits, end)
    if reply[0] == BUSY:
        return InUse(reply[1].decode())
    return Outcome.MISSING if reply[0] == MISSING else int(reply[1])


does(queues.Unlock)(
    plain(
        "unlock",
        lambda request, reply: inspection.as_text(reply[1]),
        lambda binding, request: (request.role, b""),
    )
)


@does(queues.Inspect)
async def inspect(
    caller: Caller, request: queues.Inspect, end: float | None
) -> queues.InspectReply:
    """Inspect the queue, and give back the roles of clients that have ended."""
    reply = await caller.script("inspect", request, end)
    if reply[0] == MISSING:
        return Outcome.MISSING
    found = inspection.read(reply, request.limit)
    if found.producer.holder or found.consumer.holder:
        await free_roles(caller, end)
    return found


def turns(caller: Caller, receives: bool = False) -> Turns:
    if not isinstance(caller.waiter, Turns):
        caller.waiter = Turns(caller, receives=receives)
    return caller.waiter
