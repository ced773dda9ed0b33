"""``pressure-mp demo``: a consumer dies and its item comes back; then the cost of that for a
program. The other demos are registered here."""

from __future__ import annotations

import multiprocessing
import os
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from ... import Queue
from .crash import Crash
from .fair import fair
from .pipeline import broker_url, differences, pipeline, python_files, run
from .processes import ProcessFailed
from .progress import showing
from .stages import NAMES, Counted

OURS, THEIRS = "pressure_mp.Queue", "multiprocessing.Queue"
#: Each kind runs twice, in an order that favours none.
TURNS = (OURS, THEIRS, THEIRS, OURS)
WORKERS = 2
#: Every eighth file of the standard library is counted; so many files are one item.
EACH, BATCH = 8, 16
DIFF = """\
-from multiprocessing import JoinableQueue, Queue
+from pressure_mp import JoinableQueue, Queue"""


@click.command()
@broker_url
@click.pass_context
def tour(ctx: click.Context, url: str) -> None:
    """Kill a consumer and see its item come back; then compare with multiprocessing.Queue.

    In the comparison one process names files of the standard library, two split them into tokens,
    and one adds up how often each identifier occurs: four times in all, with either kind of queue
    in turn. Takes some seconds, or a minute if the machine is very busy. Exit status 1: the counts
    differ.
    """
    console = Console()
    click.echo("A queue with a name, as between two machines. A process of it is killed.")
    if console.is_interactive:
        with showing(console) as show:
            Crash(url, lambda line: None).run(show)
    else:
        Crash(url, click.echo).run(lambda view: None)
    click.echo(f"\nA program of multiprocessing moves here by one line:\n\n{DIFF}\n")
    root = Path(sysconfig.get_path("stdlib"))
    paths = python_files(root, skip=("site-packages",))[::EACH]
    click.echo(f"The same pipeline on both, in turns: {len(paths)} files of the standard library,")
    click.echo(f"the names of {BATCH} in each item. Each identifier comes back as an item.")
    files = [paths[first : first + BATCH] for first in range(0, len(paths), BATCH)]
    race, totals = Race(len(paths)), {}
    with showing(console) as show:
        for title in TURNS:
            make: Any = multiprocessing.Queue if title == THEIRS else partial(Queue, url=url)
            start = partial(race.start, title)
            totals[title], seconds = run(make, files, WORKERS, start, show, NAMES)
            race.finish(seconds)
            show(race)
    different = differences(totals[OURS], totals[THEIRS])
    if different:
        click.echo("\n".join(["They counted differently:", *different]), err=True)
        ctx.exit(1)
    click.echo(f"Equal: {totals[OURS].tokens:,} tokens each time.")
    click.echo(race.result())


@dataclass
class Lap:
    """One run: on which queues, how many files were counted, when it began, and how long it
    took."""

    title: str
    counted: Counted
    began: float
    took: float | None = None

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began if self.took is None else self.took


class Race:
    """The view of all runs."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._laps: list[Lap] = []

    def start(self, title: str, sources: Any, counts: Any, counted: Counted) -> Callable[[], Race]:
        self._laps.append(Lap(title, counted, time.perf_counter()))
        return lambda: self

    def finish(self, seconds: float) -> None:
        self._laps[-1].took = seconds

    def line(self) -> str:
        lap = self._laps[-1]
        done = lap.counted.value
        turn = f"{len(self._laps)} of {len(TURNS)}, {lap.title}"
        return f"{turn}: {done} of {self._files} files, {lap.seconds:.1f} s"

    def picture(self) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        for lap in self._laps:
            done = lap.counted.value
            bar = ProgressBar(self._files, done, width=30)
            grid.add_row(lap.title, bar, f"{done}/{self._files}", f"{lap.seconds:.1f} s")
        return grid

    def result(self) -> str:
        took = {
            title: " + ".join(f"{lap.seconds:.2f}" for lap in self._laps if lap.title == title)
            for title in (OURS, THEIRS)
        }
        return (
            f"On {os.cpu_count()} cores, in turns:\n"
            f"{OURS} {took[OURS]} s, {THEIRS} {took[THEIRS]} s."
        )


class Demos(click.Group):
    """Runs the first demo when the first argument names no demo: the argument is the demo's own."""

    def __init__(self, first: click.Command, **settings: Any) -> None:
        super().__init__(**settings)
        self.first = first
        self.add_command(first)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ProcessFailed as error:
            raise click.ClickException(str(error)) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            if args and not args[0].startswith("-"):
                ctx.fail(f"There is no demo {args[0]!r}; there are {', '.join(self.commands)}.")
            args = [str(self.first.name), *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return self.first.collect_usage_pieces(ctx)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.first.format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.first.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


demo = Demos(tour, name="demo", short_help="Show queues in example programs.")
demo.add_command(pipeline)
demo.add_command(fair)
