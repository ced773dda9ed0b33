"""Requeue taken items at the front."""

from __future__ import annotations

from .state import Delivery, QueueState
from .storage import Entry


def put_back(state: QueueState, back: list[Entry]) -> None:
    """Requeue items at the front, in the order of their numbers; drop them if the queue was shut
    down with ``immediate``."""
    if state.dropping:
        state.counts.add("done", len(back))
        return
    count_back(state, back)
    items = state.items
    back = sorted(back, key=_number)
    while back and items and 0 < items.next().number < back[-1].number:
        back = sorted([*back, items.take()], key=_number)
    items.put_in_front(back)


def count_back(state: QueueState, back: list[Entry]) -> None:
    """Count items as not taken."""
    state.counts.add("consumed_messages", -len(back))
    size = sum(state.contents.weigh(entry.item)[0] for entry in back)
    state.counts.add("consumed_bytes", -size)


def _number(entry: Entry) -> int:
    return entry.number


def comes_back(state: QueueState, delivery: Delivery) -> bool:
    """Tell whether an item in flight is requeued; otherwise drop it or set it aside, and count it
    as done."""
    if state.dropping:
        state.contents.end(delivery.token)
        state.counts.add("done", 1)
        return False
    if 0 < delivery.limit <= delivery.entry.deliveries:
        state.rejected.append(delivery.entry.item)
        state.counts.add("done", 1)
        return False
    if delivery.token:
        state.contents.queue(delivery.token)
    return True
