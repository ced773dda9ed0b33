"""Whether a queue can have done what the clients of a history saw."""

from __future__ import annotations

from collections import Counter
from typing import Any

from foundation.histories import Event, History

#: Simulated seconds in which a history ends, although clients die: their leases end before.
_LONGEST = 60


class Wrong(AssertionError):
    """A queue cannot have done that."""


def check(history: History) -> None:
    """Raise Wrong for a history that cannot be."""
    _check_items(history)
    _check_order(history)
    _check_close(history)
    if history.hard:
        if history.ended > _LONGEST * 1_000_000:
            raise Wrong("a client waited for long")
    else:
        _check_rest(history)


def _check_items(history: History) -> None:
    seen = history.seen
    times = Counter([event.item for event in seen.got] + seen.left)
    twice = [item for item, number in times.items() if number > 1]
    if twice:
        raise Wrong(f"came twice: {twice}")
    put = {event.item for event in seen.put}
    never_put = times.keys() - put - seen.doubtful
    if never_put:
        raise Wrong(f"came although they were not put: {never_put}")
    missing = put - times.keys()
    gone = sum(client.is_dead for client in history.consumers)  # each may have had one
    if len(missing) > gone:
        raise Wrong(f"did not come: {missing}")
    if seen.left and not gone:
        raise Wrong(f"are left although the queue was said to be empty: {seen.left}")


def _check_order(history: History) -> None:
    """An item that is in the queue all the time while one behind it is taken is passed over."""
    if history.loses or any(client.is_dead for client in history.consumers):
        return  # items may have been away while they were thought to be in the queue
    seen = history.seen
    got = {event.item: event for event in seen.got}
    for first in seen.put:
        there = max(first.ended, seen.returned.get(first.item, 0))
        for second in seen.put:
            if first.ended >= second.began or not {first.item, second.item} <= got.keys():
                continue
            taken = got[second.item]
            if there < taken.began and taken.ended < got[first.item].began:
                raise Wrong(f"{second.item!r} came before {first.item!r}")


def _check_close(history: History) -> None:
    closed = history.seen.closed
    assert isinstance(closed, Event)
    late = [event.item for event in history.seen.put if event.began > closed.ended]
    if late:
        raise Wrong(f"were put after the queue was closed: {late}")


def _check_rest(history: History) -> None:
    """The queue's own counts are right when all callers have ended."""
    stats: Any = history.run_one(history.operations.stats())
    seen = history.seen
    gets = len(seen.got)
    # A put that was interrupted may have been done.
    puts = len(seen.put) + sum(event.item in seen.doubtful for event in seen.got)
    counted = (stats.produced_messages, stats.consumed_messages, stats.length)
    if counted != (puts, gets, 0):
        raise Wrong(f"counts {counted} after {puts} puts and {gets} gets")
    if waiting := history.waiting():
        raise Wrong(f"callers are in line that do not wait: {waiting}")
