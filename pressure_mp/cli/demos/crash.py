"""The first act of the tour: a queue between two groups of processes, one of which is killed."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import Process
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ... import JoinableQueue, Queue
from .processes import ProcessFailed, attended, without_interrupts

ORDERS, DEPTH = 16, 5
#: The order at which its consumer is killed.
FATAL = 4
#: Seconds that a consumer works on an order; and on the order at which it is killed.
WORK, LONG = 0.2, 3600.0
#: Seconds for which the sentence of ``why`` is shown before the next step.
READING = 2.0
#: Seconds to wait for an event before the demo fails.
PATIENCE = 60.0
#: Seconds between two checks.
INTERVAL = 0.05
#: The processes stand for two machines: they know only a name and an address.
NORTH, SOUTH = "north", "south"


class Event(NamedTuple):
    """A report of a consumer: it works on an order, or has done it."""

    pid: int
    order: int
    is_done: bool


def produce(name: str, url: str) -> None:
    """Put all orders; waits while the queue is full."""
    with JoinableQueue[int].attach(name, url=url) as orders:
        for order in range(1, ORDERS + 1):
            orders.put(order)


def consume(name: str, url: str, events: Queue[Event], fatal: int) -> None:
    """Work on orders until this process is killed; that happens while it works on the fatal
    order."""
    with JoinableQueue[int].attach(name, url=url) as orders:
        while True:
            order = orders.get()
            events.put(Event(os.getpid(), order, False))
            time.sleep(LONG if order == fatal else WORK)
            orders.task_done()
            events.put(Event(os.getpid(), order, True))


class Crash:
    """The act, and the view of it. ``show`` is called with it again and again, ``tell`` with each
    event."""

    def __init__(self, url: str, tell: Callable[[str], Any]) -> None:
        self._url = url
        self._tell_line = tell
        self._told: list[str] = []
        self._doing: dict[int, tuple[str, str]] = {}
        self._done: list[int] = []
        self._length = 0

    def run(self, show: Callable[[Crash], None]) -> None:
        """Run from the first process to the last order. Raises ProcessFailed."""
        self._show = show
        name = f"demo-orders-{os.getpid()}"
        with (
            JoinableQueue[int].create(name, DEPTH, url=self._url) as self._orders,
            Queue[Event](url=self._url) as self._events,
            ExitStack() as self._at_end,
        ):
            self._at_end.callback(self._orders.delete)
            self._play(name)

    def _play(self, name: str) -> None:
        self._start(NORTH, "puts orders", produce, name, self._url)
        victim = self._start(SOUTH, "waits", consume, name, self._url, self._events, FATAL)
        self._wait_for_event(lambda event: event.order == FATAL)
        victim.kill()
        victim.join()
        self._note(victim.pid, f"killed while it worked on order {FATAL}")
        self._wait_until(self._orders.full)
        self._tell(f"why: {self._orders.why_blocked().sentence}")
        end = time.monotonic() + READING
        self._wait_until(lambda: time.monotonic() >= end)
        self._start(SOUTH, "waits", consume, name, self._url, self._events, 0)
        self._wait_for_event(lambda event: event.order == FATAL)
        self._tell(f"Order {FATAL} came back: another process works on it.")
        self._wait_for_event(lambda event: len(self._done) == ORDERS)
        if sorted(self._done) != [*range(1, ORDERS + 1)]:
            raise ProcessFailed(f"of {ORDERS} orders these were done: {self._done}")
        self._tell(f"{ORDERS} orders were put, and {ORDERS} were done: none is lost.")
        self._show(self)

    def _start(self, machine: str, doing: str, work: Callable[..., None], *args: Any) -> Process:
        process = Process(target=attended, args=(work, *args), daemon=True)
        with without_interrupts():
            process.start()
        self._at_end.callback(process.join)
        self._at_end.callback(process.kill)
        self._note(process.pid, doing, machine)
        return process

    def _note(self, pid: int | None, doing: str, machine: str = "") -> None:
        assert pid is not None
        machine = machine or self._doing[pid][0]
        self._doing[pid] = machine, doing
        self._tell_line(f"{machine}: process {pid} {doing}")

    def _tell(self, line: str) -> None:
        self._told.append(line)
        self._tell_line(line)

    def _wait_for_event(self, is_it: Callable[[Event], bool]) -> None:
        """Note what the consumers report, up to an event of this kind."""

        def has_come() -> bool:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return False
            if event.is_done:
                self._done.append(event.order)
            else:
                self._note(event.pid, f"works on order {event.order}")
            return is_it(event)

        self._wait_until(has_come)

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not is_so():
            if time.monotonic() >= end:
                why = self._orders.why_blocked().sentence
                raise ProcessFailed(f"nothing happens for {PATIENCE:.0f} s: {why}")
            self._length = self._orders.qsize()
            self._show(self)
            time.sleep(INTERVAL)

    def line(self) -> str:
        return f"{len(self._done)} of {ORDERS} orders done; {self._length} of {DEPTH} queued"

    def picture(self) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        for pid, (machine, doing) in self._doing.items():
            style = "red" if doing.startswith("killed") else ""
            grid.add_row(machine, f"process {pid}", Text(doing, style=style))
        bars = Table.grid(padding=(0, 2))
        bars.add_row("queue", ProgressBar(DEPTH, self._length, width=30), f"{self._length}/{DEPTH}")
        done = len(self._done)
        bars.add_row("done", ProgressBar(ORDERS, done, width=30), f"{done}/{ORDERS}")
        return Group(grid, bars, *(Text(line, style="bold") for line in self._told))
