"""The command top: show all queues, again and again."""

from __future__ import annotations

import fnmatch
import os
import select
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..administration.rates import ORDERS, BrokerRates, QueueRates
from ..operations.phrases import some
from .broker import Broker, with_broker
from .inspection import BOUND, DEPTH, NAME
from .output import Column, as_json, at_most, number, seconds, table_of, write_json, write_rows

_ORDERS = ("waiting", "depth", "rate", "name")
#: Columns from which on the rates, and the depths, are shown.
_WITH_RATES, _WITH_DEPTHS = 60, 76


@with_broker
@click.argument("pattern", default="*")
@seconds("--interval", "The time between two updates.", least=0.1, default=1.0)
@at_most("End after this many updates.")
@click.option(
    "--sort",
    type=click.Choice(_ORDERS),
    default=_ORDERS[0],
    help="The order of the queues.",
)
@as_json
def top(
    pattern: str, interval: float, limit: int | None, sort: str, in_json: bool, broker: Broker
) -> None:
    """Show the queues whose name matches PATTERN, live, and which clients they wait for.

    Keys: q quits, p or space pauses, s changes the order, / asks for a pattern. Without a terminal
    a table is written at each update.
    """
    rates = BrokerRates(broker)
    screen = _Screen(rates, pattern, sort)
    if in_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        screen.write_updates(interval, limit, in_json)
        return
    console = Console(highlight=False, emoji=False)
    with _keys() as is_key, Live(console=console, screen=True, auto_refresh=False) as live:
        screen.run(live, console, is_key, interval, limit)


@contextmanager
def _keys() -> Iterator[_Keys]:
    """Read keys as they are pressed, in this block."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield _Keys()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


class _Keys:
    """The keyboard. A file of Python's would keep keys back that ``select`` does not see."""

    def __init__(self) -> None:
        self._pressed: deque[str] = deque()

    def next(self, seconds: float) -> str:
        """Return the key that is pressed within so many seconds, or nothing."""
        if not self._pressed:
            keyboard = sys.stdin.fileno()
            ready, _, _ = select.select([keyboard], [], [], max(seconds, 0.0))
            if ready:
                self._pressed.extend(os.read(keyboard, 256).decode(errors="replace"))
        return self._pressed.popleft() if self._pressed else ""


class _Screen:
    """The picture that top shows."""

    def __init__(self, rates: BrokerRates, pattern: str, sort: str) -> None:
        self._rates = rates
        self._pattern = pattern
        self._sort = sort
        self._is_paused = False
        #: A pattern that is being typed.
        self._typed: str | None = None

    def write_updates(self, interval: float, limit: int | None, in_json: bool) -> None:
        """Write a table at each update, without a terminal; or a line of JSON for each queue."""
        updates = 0
        while True:
            self._rates.update()
            now = time.monotonic()
            if in_json:
                for row in self._rows():
                    write_json(self._as_json(row, now))
            else:
                write_rows(self._rows(), _columns(self._rates, now))
            updates += 1
            if updates == limit:
                return
            time.sleep(interval)

    def _as_json(self, row: QueueRates, now: float) -> dict[str, Any]:
        def waits(since: float | None) -> float | None:
            return None if since is None else now - since

        return {
            **row.as_json(),
            "putting_for": waits(row.putting_since),
            "getting_for": waits(row.getting_since),
            "consumers_are_slow": row.queue.name in self._rates.slow,
        }

    def run(
        self, live: Live, console: Console, keys: _Keys, interval: float, limit: int | None
    ) -> None:
        updates, next_update = 0, time.monotonic()
        while True:
            if time.monotonic() >= next_update and not self._is_paused:
                self._rates.update()
                updates += 1
                next_update = time.monotonic() + interval
            live.update(self._picture(console), refresh=True)
            if updates == limit:
                return
            key = keys.next(next_update - time.monotonic() if not self._is_paused else interval)
            if not self._press(key):
                return

    def _press(self, key: str) -> bool:
        """Handle a key; return whether top goes on."""
        if self._typed is not None:
            self._type(key)
        elif key == "q":
            return False
        elif key in ("p", " "):
            self._is_paused = not self._is_paused
        elif key == "s":
            self._sort = _ORDERS[(_ORDERS.index(self._sort) + 1) % len(_ORDERS)]
        elif key == "/":
            self._typed = ""
        return True

    def _type(self, key: str) -> None:
        assert self._typed is not None
        if key in ("\r", "\n"):
            typed = self._typed
            self._pattern = typed if any(one in typed for one in "*?[") else f"*{typed}*"
            self._typed = None
        elif key in ("\x7f", "\b"):
            self._typed = self._typed[:-1]
        elif key == "\x1b":
            self._typed = None
        elif key.isprintable():
            self._typed += key

    def _rows(self) -> list[QueueRates]:
        rows = [
            one
            for one in self._rates.queues.values()
            if fnmatch.fnmatchcase(one.queue.name, self._pattern)
        ]
        return sorted(rows, key=ORDERS[self._sort])

    def _picture(self, console: Console) -> Table:
        now = time.monotonic()
        rows = self._rows()
        width, height = console.size
        columns = [
            one
            for one in _columns(self._rates, now)
            if not (one.leaves and width < _WITH_RATES)
            and not (one.head == "depths" and width < _WITH_DEPTHS)
        ]
        outer = Table.grid()
        outer.add_row(Text(self._headline(len(rows)), no_wrap=True, overflow="ellipsis"))
        outer.add_row(table_of(rows[: max(height - 4, 1)], columns, width))
        return outer

    def _headline(self, shown: int) -> str:
        if self._typed is not None:
            return f"only queues with: {self._typed}_"
        slow = sorted(self._rates.slow)
        text = (
            f"{some(shown, 'queue')}, sorted by {self._sort}{', paused' if self._is_paused else ''}"
        )
        return f"{text}; the consumers of {', '.join(slow)} are slow" if slow else text


def _columns(rates: BrokerRates, now: float) -> list[Column]:
    has_tasks = any(one.queue.tasks for one in rates.queues.values())
    workers = Column("workers", lambda row: number(row.queue.workers), True, 1)
    return [
        NAME,
        DEPTH,
        BOUND,
        Column("depths", lambda row: row.line, leaves=1),
        Column("in/s", lambda row: number(row.puts), True, 1),
        Column("out/s", lambda row: number(row.gets), True, 1),
        *([workers] if has_tasks else []),
        Column("waiting", lambda row: row.blocked(now)),
        Column("", lambda row: row.state(rates.slow), leaves=1),
    ]
