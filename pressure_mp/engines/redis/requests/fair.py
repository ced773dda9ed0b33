"""Requests that only queues that are fair by key have."""

from __future__ import annotations

from ...contract import fair
from ...contract.replies import Outcome
from ..caller import Caller
from ..implementations import does
from ..statuses import MISSING


@does(fair.GetSnapshot)
async def get_snapshot(
    caller: Caller, request: fair.GetSnapshot, end: float | None
) -> fair.GetSnapshotReply:
    reply = await caller.script("snapshot", request, end)
    if reply[0] == MISSING:
        return Outcome.MISSING
    _, length, keys, items, current = reply
    return fair.Snapshot(int(length), list(zip(keys, items, strict=True)), int(current))


@does(fair.GetKeys)
async def get_keys(caller: Caller, request: fair.GetKeys, end: float | None) -> fair.GetKeysReply:
    reply = await caller.script("tenants", (), end)
    return Outcome.MISSING if reply[0] == MISSING else list(reply[1])


@does(fair.GetQueued)
async def get_queued(
    caller: Caller, request: fair.GetQueued, end: float | None
) -> fair.GetQueuedReply:
    reply = await caller.script("queued", request, end)
    return Outcome.MISSING if reply[0] == MISSING else int(reply[1])
