"""The levels of the contract: groups of requests that an engine does or does not do."""

from __future__ import annotations

from enum import Enum


class Level(Enum):
    """A level. Every engine has ``ITEMS``; :attr:`.address.Capabilities.levels` says which
    others it has. ``requests.LEVELS`` lists the requests of each."""

    ITEMS = "items"
    """Queues are opened and deleted, and items are put and taken for good. With these a first
    engine serves Queue and SimpleQueue."""
    DELIVERIES = "deliveries"
    """A taken item stays with the broker until it is acknowledged, and is requeued if its taker
    ends; join() waits until all items are done."""
    AHEAD = "ahead"
    """Items are taken before they are asked for."""
    ADMINISTRATION = "administration"
    """The broker lists its queues and checks its settings; operators see the items of a queue,
    clear it, and see which clients hold it up."""
    TASKS = "tasks"
    """Queues of tasks, with the results of tasks and inboxes."""
    SAMPLES = "samples"
    """The broker keeps counts of all queues over time."""


EVERY_LEVEL = frozenset(Level)
