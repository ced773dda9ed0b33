"""Requests that read a queue that is fair by key. A queue of another discipline is MISSING."""

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
from .state import QueueState
from .storage import Fair


@for_items.does(GetSnapshot)
def get_snapshot(state: QueueState, request: GetSnapshot, caller: Caller) -> GetSnapshotReply:
    """List the next items, and leave them queued."""
    return state.items.snapshot(request.limit) if isinstance(state.items, Fair) else Outcome.MISSING


@for_items.does(GetKeys)
def get_keys(state: QueueState, request: GetKeys, caller: Caller) -> GetKeysReply:
    """List the keys that have queued items."""
    return state.items.keys() if isinstance(state.items, Fair) else Outcome.MISSING


@for_items.does(GetQueued)
def get_queued(state: QueueState, request: GetQueued, caller: Caller) -> GetQueuedReply:
    """Count the queued items of a key."""
    return state.items.queued(request.key) if isinstance(state.items, Fair) else Outcome.MISSING
