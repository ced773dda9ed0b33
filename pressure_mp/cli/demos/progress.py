"""Show a demo while it runs: a live display on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ... import Queue, Stats

#: Seconds between two lines, and over which a rate is taken.
SECOND = 1.0


class View(Protocol):
    """The present state of something that goes on."""

    def line(self) -> str:
        """Write it as one line of text."""

    def picture(self) -> RenderableType:
        """Draw it for a terminal."""


@contextmanager
def showing(console: Console) -> Iterator[Callable[[View], None]]:
    """Give a function that shows a view, in this block; the last view stays on the screen."""
    if console.is_interactive:
        # No refreshing thread: the demo forks, and a fork must not find a lock held.
        with Live(console=console, auto_refresh=False) as live:
            yield lambda view: live.update(view.picture(), refresh=True)
    else:
        lines = _Lines()
        yield lines.show
        lines.finish()


class _Lines:
    def __init__(self) -> None:
        self._next = 0.0
        self._untold: View | None = None

    def show(self, view: View) -> None:
        self._untold = view
        if time.monotonic() >= self._next:
            self.finish()

    def finish(self) -> None:
        if self._untold:
            click.echo(self._untold.line())
            self._untold = None
            self._next = time.monotonic() + SECOND


class Stopwatch:
    """A view of work that can only be timed."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._begin = time.monotonic()

    def line(self) -> str:
        return f"{self._title}: {time.monotonic() - self._begin:.1f} s"

    def picture(self) -> RenderableType:
        return Text(self.line())


class Gauge:
    """One queue, seen from outside: its depth, and its rate over the last second."""

    def __init__(self, title: str, queue: Queue[Any]) -> None:
        self.title = title
        self._queue = queue
        self._samples = deque([(time.monotonic(), 0)])
        self.update()

    def update(self) -> None:
        self.stats: Stats = self._queue.stats()
        now = time.monotonic()
        self._samples.append((now, self.stats.consumed_messages))
        while now - self._samples[1][0] > SECOND:
            self._samples.popleft()

    @property
    def depth(self) -> str:
        """Items in the queue, and how many it can hold."""
        return f"{self.stats.length}/{self.stats.maxsize}"

    @property
    def rate(self) -> str:
        """Items per second that were taken out."""
        (begin, before), (end, after) = self._samples[0], self._samples[-1]
        return f"{(after - before) / max(end - begin, 1e-6):,.0f} items/s"


class Flow:
    """A view of the pipeline's two queues, whose counts tell how far each stage is."""

    def __init__(self, files: int, sources: Queue[Any], counts: Queue[Any]) -> None:
        self._files = files
        self._gauges = Gauge("sources", sources), Gauge("counts", counts)

    def update(self) -> Flow:
        for gauge in self._gauges:
            gauge.update()
        return self

    def _steps(self) -> dict[str, int]:
        sources, counts = [gauge.stats for gauge in self._gauges]
        steps = {
            "read": sources.produced_messages,
            "tokenised": counts.produced_messages,
            "counted": counts.consumed_messages,
        }
        # The markers of the end are items too.
        return {step: min(done, self._files) for step, done in steps.items()}

    def line(self) -> str:
        steps = ", ".join(f"{done} {step}" for step, done in self._steps().items())
        queues = "; ".join(f"{one.title} {one.depth} {one.rate}" for one in self._gauges)
        return f"{self._files} files: {steps}; {queues}"

    def picture(self) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(min_width=9)
        grid.add_column(width=30)
        grid.add_column(justify="right", min_width=11)
        grid.add_column(justify="right", min_width=14)
        for step, done in self._steps().items():
            grid.add_row(step, ProgressBar(self._files, done), f"{done}/{self._files}", "files")
        for gauge in self._gauges:
            bar = ProgressBar(
                gauge.stats.maxsize, gauge.stats.length, finished_style="bar.complete"
            )
            grid.add_row(gauge.title, bar, gauge.depth, gauge.rate)
        return grid
