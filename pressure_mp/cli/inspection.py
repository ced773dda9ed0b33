"""The commands that show queues: ls, info, peek, why."""

from __future__ import annotations

import fnmatch
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import click

from ..administration.broker import KINDS
from ..administration.clients import diagnose
from ..administration.rates import ORDERS, QueueRates
from ..encoding.display import content_of
from ..engines.contract.brokers import QueueSummary
from ..operations.phrases import standing
from .broker import Broker, Named, with_broker, with_queue
from .output import (
    Column,
    as_json,
    at_most,
    duration,
    number,
    seconds,
    write_json,
    write_pairs,
    write_rows,
)

NAME = Column("name", lambda row: row.queue.name, is_long=True)
DEPTH = Column("depth", lambda row: number(row.queue.length), is_number=True)
BOUND = Column("bound", lambda row: number(row.queue.maxsize) if row.queue.maxsize else "-", True)
_COLUMNS = (
    NAME,
    Column("kind", lambda row: row.queue.discipline, leaves=1),
    DEPTH,
    BOUND,
    Column("in flight", lambda row: number(row.queue.in_flight), True, 2),
    Column("rejected", lambda row: number(row.queue.rejected), True, 2),
    Column("putting", lambda row: number(row.queue.putting), True, 3),
    Column("getting", lambda row: number(row.queue.getting), True, 3),
    Column("oldest", lambda row: duration(row.queue.age), True, 3),
    Column("state", lambda row: standing(row.queue) or "open", leaves=1),
)
_RATES = (
    Column("in/s", lambda row: f"{row.puts:.1f}", is_number=True),
    Column("out/s", lambda row: f"{row.gets:.1f}", is_number=True),
)


@with_broker
@click.argument("pattern", default="*")
@click.option("--kind", type=click.Choice(KINDS), help="Only queues of this kind.")
@click.option(
    "--sort",
    type=click.Choice(["depth", "name", "rejected", "waiting"]),
    help="Show the queues in this order, when all are found. Without it, each is shown as soon as "
    "it is found.",
)
@seconds(
    "--rates",
    "Count twice, this many seconds apart, and show the items put and got per second.",
    is_open=True,
)
@as_json
def ls(
    pattern: str,
    kind: str | None,
    sort: str | None,
    rates: float | None,
    in_json: bool,
    broker: Broker,
) -> None:
    """List the queues of every kind whose name matches PATTERN, such as 'jobs-*'.

    DEPTH: items that are queued (tasks: ready). BOUND: how many items the queue holds. IN FLIGHT:
    taken and not yet acknowledged. REJECTED: set aside, because they could not be decoded, were
    forged, or were delivered too often (tasks: buried). PUTTING, GETTING: clients that wait to put
    or to get. OLDEST: for how long the next task has been in the queue; brokers do not keep this
    for items.
    """

    def pages() -> Iterator[list[QueueSummary]]:
        for page in broker.pages():
            yield [
                one
                for one in page
                if fnmatch.fnmatchcase(one.name, pattern) and kind in (None, one.discipline)
            ]

    rows = _with_rates(pages, rates) if rates else map(_without_rates, pages())
    if sort:
        rows = iter([sorted((row for page in rows for row in page), key=ORDERS[sort])])
    columns = (*_COLUMNS[:4], *_RATES, *_COLUMNS[4:]) if rates else _COLUMNS
    head = True
    for page in rows:
        if in_json:
            for row in page:
                write_json(row.as_json() if rates else row.queue._asdict())
        elif page:
            write_rows(page, columns, head)
            head = False
    if head and not in_json and sys.stdout.isatty():
        click.echo(
            f"No such queue at {broker.address.url}, prefix {broker.address.prefix}.", err=True
        )


def _without_rates(page: list[QueueSummary]) -> list[QueueRates]:
    now = time.monotonic()
    return [QueueRates(one, now) for one in page]


def _with_rates(
    pages: Callable[[], Iterator[list[QueueSummary]]], seconds: float
) -> Iterator[list[QueueRates]]:
    before = {row.key: row for page in pages() for row in _without_rates(page)}
    time.sleep(seconds)
    for page in pages():
        rows = [before.get(row.key, row) for row in _without_rates(page)]
        for row, queue in zip(rows, page, strict=True):
            row.update(queue, time.monotonic())
        yield rows


@with_queue
@as_json
def info(queue: Named, in_json: bool) -> None:
    """Show all counts of the queue NAME."""
    found: dict[str, Any] = {"name": queue.name, "discipline": queue.discipline}
    found |= _counts_of_tasks(queue) if queue.has_tasks else queue.stats()._asdict()
    found["users"] = len(queue.run(queue.operations.users()))
    if in_json:
        write_json(found)
        return
    write_pairs((key.replace("_", " "), _shown(value)) for key, value in found.items())


def _counts_of_tasks(queue: Named) -> dict[str, Any]:
    stats = queue.run(queue.tasks.stats())
    return {
        "closed": stats.closed,
        "paused": stats.paused,
        "paused_tubes": stats.paused_tubes,
        "limits": [asdict(limit) for limit in stats.limits],
        "maxsize": stats.maxsize,
        "putting": stats.putting,
        **stats.words,
        "deliveries": stats.deliveries,
        "oldest_ready_age": stats.oldest_ready_age,
        "transitions": stats.transitions,
        "tubes": {name: tube.words for name, tube in stats.tubes.items()},
    }


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(of)}" for key, of in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(map(_shown, value)) or "none"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return duration(value)  # all floats are times
    return "none" if value is None else str(value)


@with_queue
@at_most("Show at most this many items.", 10)
@click.option("--rejected", is_flag=True, help="Show the items that were set aside instead.")
@as_json
def peek(queue: Named, limit: int, rejected: bool, in_json: bool) -> None:
    """Show the next items of the queue NAME; they stay in the queue.

    Text, JSON and pickles of simple values (numbers, strings, lists, dicts) are shown as values.
    For any other pickle the command shows what unpickling would call; it unpickles nothing. For a
    queue of tasks use the command tasks.
    """
    items = queue.run(queue.items.rejected(limit) if rejected else queue.items.peek_items(limit))
    for item in items:
        content = content_of(item)
        if in_json:
            write_json(content.as_json())
        else:
            click.echo(content.text)


@with_queue
@as_json
def why(queue: Named, in_json: bool) -> None:
    """Say in one sentence what the queue NAME waits for, and what to do.

    Below it: which clients put, get or wait, and how long their leases still last.
    """
    found = diagnose(queue)
    if in_json:
        write_json({"sentence": found.sentence, **_nested(found)})
    else:
        click.echo(str(found))


def _nested(value: Any) -> Any:
    """Convert records to dicts, for JSON."""
    if hasattr(value, "_asdict"):
        return {key: _nested(of) for key, of in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [_nested(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _nested(of) for key, of in value.items()}
    return value
