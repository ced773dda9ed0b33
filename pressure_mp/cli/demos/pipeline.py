"""Count the identifiers of Python programs with a pipeline of processes, twice.

Once on pressure_mp's queues and once on multiprocessing's; the results have to be equal.
"""

from __future__ import annotations

import multiprocessing
import os
import sysconfig
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from ... import Queue
from ...engines import registry
from ...exceptions import AddressError
from . import stages
from .processes import Processes
from .progress import Flow, Stopwatch, View, showing
from .stages import CONTENTS, DEPTH, AnyQueue, Counted, Stages, Totals

AQueue = TypeVar("AQueue", bound=AnyQueue)


def _check_url(ctx: click.Context, option: click.Parameter, url: str) -> str:
    """Refuse a URL of a broker that several processes cannot share."""
    try:
        capabilities = registry.parse(url).capabilities
    except AddressError as error:
        raise click.BadParameter(str(error)) from error
    if not capabilities.persistent:
        raise click.BadParameter(f"{url} is for the threads of one process; this needs more")
    return url


#: The option of every demo that says which broker it uses.
broker_url = click.option(
    "--url",
    default="embedded://",
    callback=_check_url,
    help="Where the broker is.",
)


@click.command()
@click.argument(
    "directory", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@broker_url
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=lambda: max(2, os.cpu_count() or 0),
    show_default="number of CPUs, at least 2",
    help="How many processes split files into tokens.",
)
@click.pass_context
def pipeline(ctx: click.Context, directory: Path | None, url: str, workers: int) -> None:
    """Count the identifiers of the Python files below DIRECTORY, or of the standard library.

    One process reads the files, --workers processes split them into tokens, and one counts; bounded
    queues connect them. Then the same program runs on multiprocessing.Queue. Exit status 1: the
    counts differ.
    """
    root = directory or Path(sysconfig.get_path("stdlib"))
    paths = python_files(root, skip=() if directory else ("site-packages",))
    if not paths:
        raise click.BadParameter(f"no .py files below {root}", param_hint="DIRECTORY")
    console = Console()
    files = [[path] for path in paths]

    def make_view(sources: Queue[Any], counts: Queue[Any], _: Counted) -> Callable[[], Flow]:
        click.echo(f"pressure_mp.Queue at {sources.url}")
        return Flow(len(files), sources, counts).update

    click.echo(f"{len(paths)} Python files below {root}, {workers} workers")
    make: Callable[[int], Queue[Any]] = partial(Queue, url=url)
    with showing(console) as show:
        ours, our_time = run(make, files, workers, make_view, show)
    click.echo("The commonest identifiers:")
    commonest = sorted(ours.identifiers.items(), key=lambda item: (-item[1], item[0]))
    for identifier, times in commonest[:10]:
        click.echo(f"{times:>10,}  {identifier}")

    click.echo("The same pipeline on multiprocessing.Queue")
    watch = Stopwatch("multiprocessing.Queue")
    with showing(console) as show:
        theirs, their_time = run(
            multiprocessing.Queue, files, workers, lambda *_: lambda: watch, show
        )
    different = differences(ours, theirs)
    if different:
        click.echo("DIFFERENT, pressure_mp.Queue and multiprocessing.Queue:", err=True)
        for difference in different:
            click.echo(f"  {difference}", err=True)
        ctx.exit(1)
    click.echo(
        f"Equal: {ours.files:,} files ({ours.skipped:,} skipped), {ours.tokens:,} tokens, "
        f"{len(ours.identifiers):,} different identifiers"
    )
    click.echo(f"pressure_mp.Queue {our_time:.2f} s, multiprocessing.Queue {their_time:.2f} s")


def python_files(root: Path, skip: tuple[str, ...]) -> list[Path]:
    """Return every ``.py`` file below ``root``, but not in directories of the names in ``skip``."""
    found = []
    for directory, subdirectories, files in os.walk(root):
        subdirectories[:] = [name for name in subdirectories if name not in skip]
        found += [Path(directory, name) for name in files if name.endswith(".py")]
    return sorted(path for path in found if path.is_file())


def run(
    make: Callable[[int], AQueue],
    files: list[list[Path]],
    workers: int,
    make_view: Callable[[AQueue, AQueue, Counted], Callable[[], View]],
    show: Callable[[View], None],
    how: Stages = CONTENTS,
) -> tuple[Totals, float]:
    """Join the stages with queues, which ``make`` makes for a bound; run them to the end. Each
    batch of ``files`` is one item.

    ``make_view`` gets both queues and the number of counted files, and returns a function for
    the view. Raises ProcessFailed when one of the processes fails.
    """
    sources, counts, totals = make(DEPTH), make(how.depth), make(1)
    counted: Counted = RawValue("L")
    processes = Processes()
    processes.add("reading", how.read, files, sources, workers)
    for _ in range(workers):
        processes.add("tokenising", how.tokenise, sources, counts)
    processes.add("counting", stages.total, counts, totals, workers, counted)
    look = make_view(sources, counts, counted)
    begin = time.perf_counter()
    with processes.at_work():
        result: Totals = processes.wait_for(totals, lambda: show(look()))
        seconds = time.perf_counter() - begin
        show(look())
    return result, seconds


def differences(ours: Totals, theirs: Totals) -> list[str]:
    """Name the differences between both, in words."""
    found = [
        f"{what}: {getattr(ours, what):,} and {getattr(theirs, what):,}"
        for what in ("files", "skipped", "tokens")
        if getattr(ours, what) != getattr(theirs, what)
    ]
    for identifier in sorted(ours.identifiers.keys() | theirs.identifiers.keys()):
        mine, other = ours.identifiers[identifier], theirs.identifiers[identifier]
        if mine != other:
            found.append(f"identifier {identifier}: {mine:,} and {other:,}")
    return found
