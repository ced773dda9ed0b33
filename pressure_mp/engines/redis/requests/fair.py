"""Requests that only queues that are fair by key have."""

from __future__ import annotations

from ...contract import fair
from ..implementations import does
from ..one_script import only_list, plain
from ..statuses import Reply


def _read_snapshot(request: fair.GetSnapshot, reply: Reply) -> fair.GetSnapshotReply:
    _, length, keys, items, current = reply
    return fair.Snapshot(int(length), list(zip(keys, items, strict=True)), int(current))


does(fair.GetSnapshot)(plain("snapshot", _read_snapshot))
does(fair.GetKeys)(plain("tenants", only_list))
does(fair.GetQueued)(plain("queued", lambda request, reply: int(reply[1])))
