"""The page of all queues."""

from __future__ import annotations

import fnmatch
import time
from typing import Any

from ...administration.broker import KINDS
from ...administration.rates import ORDERS, QueueRates
from ...engines.contract.brokers import QueueSummary
from ..charts import bar, spark
from ..markup import Child, Markup, element
from ..monitor import View
from . import layout
from .layout import NOTHING, Context, duration, number, queue_link, rate

#: The most queues on one page.
_MOST = 100
_HEADS = ["Queue", "Kind", "Depth", "Bound", "Last depths", "In/s", "Out/s", "Waiting"]
_HEADS += ["In flight", "Rejected", "Oldest", "State"]
_ORDERS = ("depth", "rate", "rejected", "name")


def make(context: Context) -> str:
    view = context.monitor.view()
    found = _chosen(context, view)
    start = context.number("start", 0, len(found))
    shown = found[start : start + _MOST]
    now = time.monotonic()
    rows = [_row(one, view, now) for one in shown]
    turn = layout.turn("./", context.query, start, _MOST, len(found))
    empty = "No queue matches." if view.queues else "There is no queue yet."
    table = layout.table(_HEADS, rows, empty, class_="queues")
    every = element("p", element("a", "Show all queues", href="./"))
    return layout.page(
        context,
        "Queues",
        element("h1", "Queues"),
        _filter(context),
        layout.live("list", summary(view), table, every if view.queues and not found else turn),
        here="./",
    )


def _chosen(context: Context, view: View) -> list[QueueRates]:
    pattern, kind = context.query.get("find", ""), context.query.get("kind", "")
    if not any(one in pattern for one in "*?["):
        pattern = f"*{pattern}*"
    found = [
        one
        for one in view.queues.values()
        if fnmatch.fnmatchcase(one.queue.name, pattern) and kind in ("", one.queue.discipline)
    ]
    order = context.query.get("sort", "")
    return sorted(found, key=ORDERS.get(order, ORDERS["waiting"]))


def _filter(context: Context) -> Markup:
    def choice(name: str, label: str, first: str, others: Any) -> Markup:
        chosen = context.query.get(name, "")
        options = [
            element("option", text, value=value, selected=value == chosen)
            for value, text in (("", first), *((one, one) for one in others))
        ]
        return element("label", label, " ", element("select", options, name=name))

    find = element(
        "input",
        type="search",
        name="find",
        id="find",
        value=context.query.get("find", ""),
        placeholder="part of a name, or jobs-*",
        autocomplete="off",
    )
    return element(
        "form",
        element("label", "Name ", find),
        choice("kind", "Kind", "all", KINDS),
        choice("sort", "Order", "waiting", _ORDERS),
        element("button", "Show"),
        method="get",
        action="./",
        role="search",
        class_="filter",
    )


def summary(view: View) -> Child:
    """Make the line above all queues."""
    if view.error:
        return element(
            "p", f"The broker cannot be asked: {view.error}", class_="alarm", role="alert"
        )
    queues = [one.queue for one in view.queues.values()]
    parts = [f"{number(len(queues))} {'queue' if len(queues) == 1 else 'queues'}"]
    for text, some in (
        ("full", sum(one.is_full for one in queues)),
        ("shut down", sum(one.closed for one in queues)),
        ("paused", sum(one.paused or bool(one.paused_tubes) for one in queues)),
        ("with rejected items", sum(one.rejected > 0 for one in queues)),
    ):
        if some:
            parts.append(f"{number(some)} {text}")
    waiting = sum(one.putting for one in queues), sum(one.getting for one in queues)
    parts.append(f"{number(waiting[0])} wait to put, {number(waiting[1])} to get")
    return [element("p", ", ".join(parts), class_="summary"), bottleneck(view)]


def bottleneck(view: View) -> Markup | None:
    """Name the queues with consumers that delay the other queues."""
    slow = [key for key in sorted(view.queues) if key[0] in view.slow]
    if not slow:
        return None
    links: list[Child] = []
    for key in slow[:5]:
        links += [", " if links else "", queue_link(key)]
    more = f" and {len(slow) - 5} more" if len(slow) > 5 else ""
    return element("p", "The consumers of ", links, more, " are slow.", class_="alarm")


def _row(one: QueueRates, view: View, now: float) -> Markup:
    queue = one.queue
    return layout.row(
        _HEADS,
        [
            queue_link(one.key),
            queue.discipline,
            depth(queue),
            number(queue.maxsize) if queue.maxsize else NOTHING,
            spark(list(one.depths), queue.maxsize),
            rate(one.puts),
            rate(one.gets),
            one.blocked(now) or NOTHING,
            number(queue.in_flight),
            number(queue.rejected),
            duration(queue.age),
            one.state(view.slow) or "open",
        ],
        "slow" if queue.name in view.slow else None,
    )


def depth(queue: QueueSummary, bound: str = "") -> Markup:
    """Show how many items there are, and which part of the bound that is."""
    used = bar(queue.length, queue.maxsize) if queue.maxsize else None
    return element("span", number(queue.length), bound, used, class_="depth")
