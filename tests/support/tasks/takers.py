"""Takers of tests: that wait, that take what is there, and that find nothing."""

from __future__ import annotations

import pytest
from waiting import HOURS, Background, parks, until

from pressure_mp import BrokerUnavailable, Empty


def parked(queue, **options):
    """A taker that waits."""
    taker = Background(queue.take, HOURS, **options)
    until(lambda: parks(taker))
    return taker


def taken(queue, number, **options):
    return [task.data for task in queue.take_many(number, timeout=0, **options)]


def is_empty(queue, **options):
    with pytest.raises(Empty):
        queue.take(0, **options)
    return True


def answers(queue):
    """The statistics of a queue; None while its broker is away."""
    try:
        return queue.stats()
    except BrokerUnavailable:
        return None
