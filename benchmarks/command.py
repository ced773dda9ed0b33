"""The command: ``python -m benchmarks``, from the checkout, with the ``bench`` extra installed."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from . import machine, plots, server
from .page import Page
from .peers import PEERS
from .results import Results
from .running import Run, say
from .workloads import FULL, QUICK, Section, sections

DOCS = Path(__file__).parents[1] / "docs"
#: Seconds that the page and its plots take at most.
AFTERWARDS = 20.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure pressure_mp beside its peers. A whole run writes docs/benchmarks.md; "
        "with --quick, --only or --peers the page is printed instead, unless --output says where.",
    )
    parser.add_argument("--rounds", type=int, default=5, help="at most so many (default: 5)")
    parser.add_argument(
        "--minutes", type=float, default=10, help="no round that would end later (default: 10)"
    )
    parser.add_argument("--quick", action="store_true", help="little of everything, to try it out")
    parser.add_argument("--only", nargs="+", metavar="KEY", help="only these; payload-* is many")
    parser.add_argument("--peers", nargs="+", metavar="KEY", choices=PEERS, help="only these")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="benchmarks.md and its plots")
    parser.add_argument("--list", action="store_true", help="print the keys, and measure nothing")
    return parser.parse_args()


def chosen(every: list[Section], patterns: list[str], keys: list[str]) -> list[Section]:
    """The sections with the workloads, and these with the peers, that are wanted."""
    found = []
    for section in every:
        workloads = tuple(
            replace(workload, peers=tuple(key for key in workload.peers if key in keys))
            for workload in section.workloads
            if any(fnmatch(workload.key, pattern) for pattern in patterns)
            and not set(keys).isdisjoint(workload.peers)
        )
        if workloads:
            found.append(replace(section, workloads=workloads))
    return found


def main() -> None:
    options = arguments()
    deadline = time.monotonic() + 60 * options.minutes - AFTERWARDS
    scale = QUICK if options.quick else FULL
    peers = [PEERS[key] for key in options.peers or PEERS]
    wanted = chosen(sections(scale), options.only or ["*"], [peer.key for peer in peers])
    workloads = [workload for section in wanted for workload in section.workloads]
    if options.list:
        print(*(workload.key for workload in workloads), sep="\n")
        print(*(f"{peer.key}: {peer.title}" for peer in peers), sep="\n")
        return
    before = machine.load()
    with server.running() as site:
        run = Run(site, workloads, peers, scale.seconds)
        rounds = run.rounds(options.rounds, deadline)
        there = [peer for peer in peers if peer.key not in run.results.missing]
        facts = machine.facts(site.server(), there)
    facts["rounds"] = f"{rounds}{' (--quick)' if options.quick else ''}"
    facts["load averages"] = f"{before} before; {machine.load()} after (1, 5, 15 minutes)"
    part = options.quick or options.only or options.peers
    folder = options.output or (None if part else DOCS)
    page = Page(wanted, scale, run.results, peers, facts)
    write(page, folder, run.results)


def write(page: Page, folder: Path | None, results: Results) -> None:
    if folder is None:
        print(page.text())
        return
    try:
        page = replace(page, plots=plots.draw(page.sections, results, folder / "benchmarks"))
    except ImportError as error:
        say(f"no plots: {error}")
    path = folder / "benchmarks.md"
    path.write_text(page.text())
    say(f"written: {path}")
