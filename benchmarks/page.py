"""The page as a whole: docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import goals, report
from .peers.base import Peer
from .results import Results
from .workloads import Scale, Section

INTRODUCTION = """\
# Benchmarks

`tox -e bench` measured this and wrote this page: every peer and `pressure_mp`, taking turns, in
one run on one machine. A figure is the median of the rounds; below it are the lowest and the
highest. In parentheses it is divided by the figure of the first row. The peers keep other promises:
a queue in the memory of one machine, or a list that counts no items, does less than a queue
that many machines share.

The queues of this page are at Valkey. [The page about PostgreSQL](postgres.md#speed) has the
figures of queues in a database, beside SKIP LOCKED by hand, pgmq, pgqueuer and procrastinate.
"""


@dataclass(frozen=True)
class Page:
    sections: Sequence[Section]
    scale: Scale
    results: Results
    peers: Sequence[Peer]
    facts: dict[str, str]
    plots: Sequence[Path] = ()

    def text(self) -> str:
        parts = [
            INTRODUCTION,
            report.facts(self.facts),
            "## Goals\n\nOurs divided by what stands beside it; µs for hand-off and ping-pong.",
            report.goals(self._outcomes()),
        ]
        for section in self.sections:
            parts.append(report.section(section, self.results))
            if section.title == "Hand-off":
                parts += ["Percentiles of single times, µs, with one consumer that waits:"]
                parts += [report.percentiles(section.workloads[0], self.results)]
        if self.plots:
            parts += ["## Plots", *(_picture(path) for path in self.plots)]
        parts += ["## Left out", report.left_out(self.results)]
        parts += ["## How each is set up", report.set_ups(self.peers)]
        return "\n\n".join(part.strip() for part in parts) + "\n"

    def _outcomes(self) -> list[goals.Outcome]:
        outcomes = [goal.outcome(self.results) for goal in goals.goals(self.scale.depth)]
        return outcomes + list(goals.steps(self.results, self.scale.sizes))


def _picture(path: Path) -> str:
    inside = f"{path.parent.name}/{path.name}"
    return f"![{path.name}]({inside}.png)\n\n[as SVG]({inside}.svg)"
