"""Where the items of a queue are: in shared memory, or at the broker."""

from __future__ import annotations

from pressure_mp.engines.contract.session import is_local


def is_here(queue):
    """Whether the items are in shared memory."""
    return is_local(queue._at.binding) and queue._at.binding.are_here


def move(queue):
    """Move the items to the broker, by a call that needs them there."""
    queue.rejected()
    assert not is_here(queue)


def waiting_loops(queue):
    """How many event loops wait for the items or the space of a queue, or for the end of all work,
    as its file says."""
    places = queue._at.binding.items.ring._places
    return sum(places[at] > 0 for at in range(0, len(places), 2))
