"""Requests to queues that are fair by key."""

from __future__ import annotations

from typing import NamedTuple

from .replies import Missing


class Snapshot(NamedTuple):
    """A fair queue at one moment: the number of queued items, and the next items, each with its
    key. The first ``current`` items belong to the present round."""

    length: int
    items: list[tuple[bytes, bytes]]
    current: int


class GetSnapshot(NamedTuple):
    """Get the next items in the order of service, up to ``limit``."""

    limit: int


GetSnapshotReply = Snapshot | Missing


class GetKeys(NamedTuple):
    """List the keys that have queued items, in no order."""


GetKeysReply = list[bytes] | Missing


class GetQueued(NamedTuple):
    """Count the queued items of one key."""

    key: bytes


GetQueuedReply = int | Missing
