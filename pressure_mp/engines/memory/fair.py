"""To look at a queue that is fair by key. Of another discipline there is none of that name."""

from __future__ import annotations

from ..contract.fair import (
    GetKeys,
    GetKeysReply,
    GetQueued,
    GetQueuedReply,
    GetSnapshot,
    GetSnapshotReply,
)
from ..contract.replies import Outcome
from .dispatch import for_items
from .line import Caller
from .orders import Fair
from .state import QueueState


@for_items.does(GetSnapshot)
def get_snapshot(state: QueueState, request: GetSnapshot, caller: Caller) -> GetSnapshotReply:
    """The next items, which stay."""
    return state.items.snapshot(request.limit) if isinstance(state.items, Fair) else Outcome.MISSING


@for_items.does(GetKeys)
def get_keys(state: QueueState, request: GetKeys, caller: Caller) -> GetKeysReply:
    """The keys that have items queued."""
    return state.items.keys() if isinstance(state.items, Fair) else Outcome.MISSING


@for_items.does(GetQueued)
def get_queued(state: QueueState, request: GetQueued, caller: Caller) -> GetQueuedReply:
    """How many items of a key are queued."""
    return state.items.queued(request.key) if isinstance(state.items, Fair) else Outcome.MISSING
