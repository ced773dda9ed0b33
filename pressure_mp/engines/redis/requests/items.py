"""Requests that put and take items, and that settle taken items."""

from __future__ import annotations

import itertools
import time
from typing import Any

from ....identity.client import client_id, client_id_bytes, process_prefix
from ...contract import fair, items
from ...contract.items import MOST_BYTES, MOST_ITEMS, TAKE_ONE
from ...contract.replies import Closed, Ended, InUse, Missing, NoItem, NoSpace, Outcome
from ..binding import RedisBinding
from ..caller import Caller, does
from ..keys import FIFO
from ..one_script import FirstScript, PlainRead, ReadFirst, only_list, plain
from ..packing import or_none, pack_command
from ..role_checks import note_renewal
from ..roles import finish_check, wake
from ..statuses import (
    BUSY,
    DONE,
    EMPTY,
    FULL,
    LARGE,
    MISSING,
    TAKEN,
    UNORDERED,
    Reply,
    outcome,
)
from .contents import sweep_all
from .queues import turns

#: A field beside the producers: it exists if there ever was a producer.
_EVER = "ever"

_new = tuple.__new__

ONE_ADDED = items.Added(1)


def _offer(binding: RedisBinding, request: items.Put) -> tuple[str, tuple[Any, ...]] | None:
    """Use the fast path for one ordinary item."""
    fast = binding.put_at_once
    if fast is None or not fast.is_open:
        return None
    added, sort_keys, overfill, has_content, _ = request
    if sort_keys or overfill or has_content or len(added) != 1:
        return None
    return fast.op, (added[0], client_id_bytes())


def _offered(request: items.Put, reply: Reply) -> items.Added | None:
    return ONE_ADDED if reply[0] == DONE else None


async def put(
    caller: Caller, request: items.Put, end: float | None, said: Reply | None
) -> items.PutReply:
    added, sort_keys, overfill, has_content, waits = request
    if len(added) == 1 or caller.binding.discipline != FIFO:
        order = sort_keys[0] if sort_keys else b""
        args: tuple[Any, ...] = (added[0], int(overfill), order, int(has_content))
        fast = None if overfill or has_content else caller.binding.put_at_once
        if fast is not None and said is not None:
            fast.close()
        reply = await turns(caller).call("put", args, waits, end, fast)
    else:
        reply = await turns(caller).call("put_many", (len(added), *added), waits, end)
    if reply[0] == DONE:
        return ONE_ADDED if len(reply) == 1 else items.Added(int(reply[1]))
    if reply[0] == FULL:
        return NoSpace(int(reply[2]))
    if reply[0] == BUSY and reply[1] == b"consumer":
        return NoSpace(int(reply[3]))
    if reply[0] == BUSY:
        return InUse("producer")
    if reply[0] == UNORDERED:
        return items.NotComparable(reply[1])
    return outcome(reply)


does(items.Put)(FirstScript(_offer, _offered, put))


def _poll(binding: RedisBinding, request: items.Take) -> tuple[str, tuple[Any, ...]] | None:
    """Use the fast path for one item that is taken for good."""
    fast = binding.get_at_once
    if fast is None or not fast.is_open:
        return None
    if request is not TAKE_ONE and request[:3] != TAKE_ONE[:3]:
        return None
    return fast.op, (client_id_bytes(),)


def _polled(request: items.Take, reply: Reply) -> items.Taken | None:
    # As in `items.put_one`, in half the time of a named tuple's own constructor.
    return _new(items.Taken, (reply[1:], ())) if reply[0] == DONE else None


async def _take(
    caller: Caller, request: items.Take, end: float | None, said: Reply | None
) -> items.TakeReply:
    limit, hold, until_ended, waits = request
    if hold is not None:
        return await _take_and_hold(caller, request, hold, end)
    eof = int(until_ended)
    if limit > 1:
        args = (min(limit, MOST_ITEMS), MOST_BYTES, eof)
        reply = await turns(caller).call("get_many", args, waits, end)
        if reply[0] == DONE:
            return items.Taken([item for some in reply[1:] for item in some])
        return _not_taken(reply)
    fast = None if until_ended else caller.binding.get_at_once
    if fast is not None and said is not None:
        fast.close()
        if said[0] == EMPTY and not waits:
            return NoItem()
    receives = fast is not None and waits and caller.receives
    reply = await turns(caller, receives).call("get", (eof,), waits, end, fast)
    return items.Taken(reply[1:]) if reply[0] == DONE else _not_taken(reply)


does(items.Take)(FirstScript(_poll, _polled, _take))


async def _take_and_hold(
    caller: Caller, request: items.Take, hold: items.Hold, end: float | None
) -> items.TakeReply:
    number, eof = min(request.limit, MOST_ITEMS), int(request.until_ended)
    args = (hold.owner, hold.call, hold.limit, number, MOST_BYTES, hold.reader, eof)
    reply = await turns(caller).call("take", args, request.waits, end)
    if reply[0] == DONE:
        return items.Taken(reply[2], [*map(int, reply[1])])
    return _not_taken(reply)


def _not_taken(reply: Reply) -> NoItem | InUse | Closed | Ended | Missing:
    if reply[0] == EMPTY:
        return NoItem()
    if reply[0] == BUSY:
        return InUse("consumer")
    return outcome(reply)


@does(items.TakeBack)
async def take_back(
    caller: Caller, request: items.TakeBack, end: float | None
) -> items.TakeBackReply:
    args = (*request.call, request.if_open)
    reply = await caller.script("take_back", args, end)
    if reply[0] == TAKEN:
        return items.Taken(reply[1])
    return outcome(reply)


def _fetch(binding: RedisBinding, request: items.Prefetch) -> tuple[str, tuple[Any, ...]]:
    reader, call, handed, kept, limit, until_ended, alone = request[:7]
    lease = binding.options.lease
    if not (alone or limit):
        return "note_handed", (reader, call, handed, lease)
    which = (reader, call, handed, kept, min(limit, MOST_ITEMS), MOST_BYTES)
    if alone:
        return "reserve", (*which, process_prefix(), client_id(), lease)
    return "prefetch", (*which, int(until_ended), client_id_bytes(), lease)


def _prefetched(request: items.Prefetch, reply: Reply) -> items.PrefetchReply:
    if reply[0] == DONE:
        return _taken_ahead(request, reply[1] if len(reply) > 1 else [])
    if reply[0] == LARGE:
        return items.NextIsLarge()
    if reply[0] in (EMPTY, BUSY):
        return _not_taken(reply)
    return outcome(reply)


def _taken_ahead(request: items.Prefetch, found: list[bytes]) -> items.Taken | NoItem:
    return items.Taken(found) if found or not request.limit else NoItem()


def _read_plainly(binding: RedisBinding, request: items.Prefetch) -> PlainRead | None:
    """Read the next items of a reader that goes on by a plain command: items that a script returns
    take twice the server's time."""
    reader, call, handed, kept, limit, _, alone, out, size = request
    if not (alone and limit and out and size) or not binding.reserve_unbounded.is_due():
        return None
    seen = out + kept
    last = seen + max(1, min(limit, MOST_ITEMS, MOST_BYTES * out // size))
    command = pack_command(("LRANGE", binding.key("data"), -last, -seen - 1))
    own = (client_id_bytes(), process_prefix(), binding.options.lease)
    return PlainRead(
        command, "reserve_unbounded", (reader, call, handed - out, handed, kept, size, *own)
    )


def _read_on(
    binding: RedisBinding, request: items.Prefetch, found: Any, reply: Reply
) -> items.Taken | NoItem | None:
    """Return the items that were read, oldest first. They do not count if the script declined, nor
    if none was read and items have come since."""
    if reply[0] != DONE or type(found) is not list:
        binding.reserve_unbounded.close()
        return None
    if not found and reply[1] != b"0":
        return None
    found.reverse()
    return _taken_ahead(request, found)


does(items.Prefetch)(ReadFirst(_fetch, _prefetched, _read_plainly, _read_on))


@does(items.EndPrefetch)
async def end_prefetch(
    caller: Caller, request: items.EndPrefetch, end: float | None
) -> items.EndPrefetchReply:
    reader, call, handed, alone = request
    args: tuple[Any, ...] = (reader, call, handed)
    if alone:
        reply = await caller.script("end_reservation", (*args, "reader", client_id()), end)
    else:
        reply = await caller.script("end_prefetch", (*args, caller.binding.options.lease), end)
    return items.HandedOut(int(reply[1]))


@does(items.Acknowledge)
async def acknowledge(
    caller: Caller, request: items.Acknowledge, end: float | None
) -> items.AcknowledgeReply:
    """Acknowledge an item, and remove its chunks."""
    owner, number = request
    reply = await caller.script("acknowledge", (owner, or_none(number)), end)
    if len(reply) > 2 and reply[2]:
        await sweep_all(caller)
    return outcome(reply)


def _placed(request: items.PeekItems, reply: Reply) -> list[items.Placed]:
    if len(reply) == 2:  # the item alone is its sort key
        return [items.Placed(item, b"") for item in reply[1]]
    _, found, begin, keys = reply
    return [items.Placed(item, begin + key) for item, key in zip(found, keys, strict=True)]


def _set_aside(binding: RedisBinding, request: items.SetAside) -> tuple[Any, ...]:
    item, owner, number = request
    return item, owner, or_none(number)


def _requeue(binding: RedisBinding, request: items.Requeue) -> tuple[Any, ...]:
    owner, seen, call, numbers, handed = request
    which = owner, or_none(seen), or_none(call), binding.options.lease
    return (*which, len(numbers), *numbers, *itertools.chain(*handed))


does(items.SetAside)(plain("reject", args=_set_aside))
does(items.GetRejected)(plain("rejected", only_list))
does(items.RequeueRejected)(plain("requeue_rejected"))
does(items.DropRejected)(plain("drop_rejected"))
does(items.PeekItems)(plain("peek", _placed))
does(items.Requeue)(plain("requeue", args=_requeue))


def _read_snapshot(request: fair.GetSnapshot, reply: Reply) -> fair.GetSnapshotReply:
    _, length, keys, items, current = reply
    return fair.Snapshot(int(length), list(zip(keys, items, strict=True)), int(current))


does(fair.GetSnapshot)(plain("snapshot", _read_snapshot))
does(fair.GetKeys)(plain("tenants", only_list))
does(fair.GetQueued)(plain("queued", lambda request, reply: int(reply[1])))


@does(items.Renew)
async def renew(caller: Caller, request: items.Renew, end: float | None) -> items.RenewReply:
    """Renew leases, and give back the roles of clients that have ended."""
    owner, consumes, produces = request
    lease, role_checks = caller.binding.options.lease, caller.binding.role_checks
    asked, began = role_checks.present(), time.monotonic()
    tickets = [one.ticket for one in asked]
    args = (owner, lease, int(consumes), int(produces), *tickets)
    reply = await caller.script("renew", args, end)
    if reply[0] == MISSING:
        note_renewal(asked, began, map(str.encode, tickets))
        return Outcome.MISSING
    note_renewal(asked, began, reply[6])
    await finish_check(caller, *reply[4:6])
    return attendance(reply)


@does(items.Retire)
async def retire(caller: Caller, request: items.Retire, end: float | None) -> items.RetireReply:
    owner, seen = request
    reply = await caller.script("retire", (owner, or_none(seen)), end)
    if reply[0] == DONE:
        await wake(caller, reply[1:])
    return outcome(reply)


def attendance(reply: Reply) -> items.Attendance:
    """Read the other processes from a reply of ``renew``."""
    producers = leases(reply[3])
    producers.pop(_EVER, None)
    return items.Attendance(int(reply[1]), leases(reply[2]), producers)


def leases(flat: list[Any]) -> dict[str, int]:
    """Read names, each followed by the end of its lease."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {name.decode(errors="replace"): int(until) for name, until in pairs}
