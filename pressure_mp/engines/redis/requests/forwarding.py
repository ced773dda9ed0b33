"""The request that settles a delivery of one queue and puts on another: one script, which has the
scripts of both."""

from __future__ import annotations

from typing import Any

from ....exceptions import PressureError
from ...contract.forwarding import Forward, Forwarded, ForwardReply, NotSettled
from ...contract.items import Acknowledge, Added, Put
from ...contract.task_records import StoredTask
from ...contract.tasks import AckTask
from ..binding import RedisBinding
from ..caller import Caller, does
from ..one_script import bells_in
from ..scripts import FORWARDS
from ..statuses import DONE, Reply, outcome
from ..turns import Turns
from . import items, tasks

_REFUSED = b"refused"


class _RefusedError(PressureError):
    """The source refused to settle, and replied so."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


class _ForwardingTurns(Turns):
    """The turns of a put that settles a delivery too."""

    request: Forward
    settled: Reply

    async def _script(self, op: str, args: tuple[Any, ...], end: float | None) -> Reply:
        if op != "put":
            return await super()._script(op, args, end)
        said, self.settled = await _call(self._caller, self.request, args, end)
        return said


async def _call(
    caller: Caller, request: Forward, args: tuple[Any, ...], end: float | None
) -> tuple[Reply, Reply]:
    """Call the script, and wake the waiters of both queues. Return the replies to the put and to
    the settlement. Raises :class:`_RefusedError`."""
    source: RedisBinding = request.source
    if isinstance(request.settle, Acknowledge):
        op, settling = "forward_item", (request.settle.owner, request.settle.number)
    else:
        op = "forward_task" if isinstance(request.settle, AckTask) else "forward_release"
        settling = tasks.changes(source, request.settle)
    keys = (source.key(part) for part in source.scripts[FORWARDS[op][1]].keys)
    reply = await caller.script(op, (*keys, *settling, *args), end)
    status, checked, *rest = reply
    settled: Reply = rest[1] if status == DONE else []
    if op != "forward_item":
        bells = tuple(source.bell(bell) for one in (checked, settled) for bell in bells_in(one))
        if bells:
            await caller.script("ring", bells)
    if status == _REFUSED:
        raise _RefusedError(checked)
    return rest[0], settled


@does(Forward)
async def forward(caller: Caller, request: Forward, end: float | None) -> ForwardReply:
    return await _forward(caller, request, end, tries=False)


async def try_forward(caller: Caller, request: Forward, end: float | None) -> ForwardReply:
    """Do the request if no other client waits; it does not wait itself."""
    assert isinstance(request.put, Put)
    put = request.put._replace(waits=False)
    return await _forward(caller, request._replace(put=put), end, tries=True)


async def _forward(
    caller: Caller, request: Forward, end: float | None, tries: bool
) -> ForwardReply:
    try:
        if isinstance(request.put, Put):
            turns = caller.waiter
            if not isinstance(turns, _ForwardingTurns):
                caller.waiter = turns = _ForwardingTurns(caller, tries)
            turns.request = request
            reply = await items.put(caller, request.put, end, None)
            if not isinstance(reply, Added):
                return reply
            return Forwarded([], _settled(request, turns.settled))
        args = tasks.put_args(caller, request.put)
        said, settled = await _call(caller, request, args, end)
    except _RefusedError as error:
        if isinstance(request.settle, Acknowledge):
            return NotSettled(outcome(error.reply))
        why: Any = tasks.settlement(request.settle.id, error.reply)
        return NotSettled(why)
    if bells := bells_in(said):
        await caller.script("ring", bells)
    put = tasks.read_put(caller, request.put, said)
    return Forwarded(put, _settled(request, settled)) if isinstance(put, list) else put


def _settled(request: Forward, reply: Reply) -> StoredTask | None:
    if isinstance(request.settle, Acknowledge):
        return None
    found = tasks.settlement(request.settle.id, reply)
    assert isinstance(found, StoredTask)
    return found
