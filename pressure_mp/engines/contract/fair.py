"""Requests of queues that are fair by key."""

from __future__ import annotations

from typing import NamedTuple

from .replies import Missing


class Snapshot(NamedTuple):
    """A fair queue at one moment: how many items are queued; and of these the next ones, each with
    its key, of which the first ``current`` belong to the present round."""

    length: int
    items: list[tuple[bytes, bytes]]
    current: int


class GetSnapshot(NamedTuple):
    """The next items in the order of service, up to ``limit``."""

    limit: int


GetSnapshotReply = Snapshot | Missing


class GetKeys(NamedTuple):
    """The keys that have items queued, in no order."""


GetKeysReply = list[bytes] | Missing


class GetQueued(NamedTuple):
    """How many items of one key are queued."""

    key: bytes


GetQueuedReply = int | Missing
