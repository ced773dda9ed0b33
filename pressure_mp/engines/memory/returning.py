"""Items that were taken go back to the front."""

from __future__ import annotations

from .orders import Entry, Fifo
from .state import Flight, QueueState


def put_back(state: QueueState, back: list[Entry]) -> None:
    """Put items back to the front, in the order of their numbers; drop them where the queue was
    shut down so."""
    if state.dropping:
        state.done += len(back)
        return
    state.consumed_messages -= len(back)
    state.consumed_bytes -= sum(state.contents.weigh(entry.item)[0] for entry in back)
    items = state.items
    assert isinstance(items, Fifo)  # items of other disciplines are never in flight
    back = sorted(back, key=_number)
    while back and items and 0 < items[0].number < back[-1].number:
        back = sorted([*back, items.popleft()], key=_number)
    items.extendleft(reversed(back))


def _number(entry: Entry) -> int:
    return entry.number


def comes_back(state: QueueState, flight: Flight) -> bool:
    """Whether an item in flight may be put back; else it is dropped or set aside, and done."""
    if state.dropping:
        state.contents.end(flight.token)
        state.done += 1
        return False
    if 0 < flight.limit <= flight.entry.deliveries:
        state.rejected.append(flight.entry.item)
        state.done += 1
        return False
    if flight.token:
        state.contents.queue(flight.token)
    return True
