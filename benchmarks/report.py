"""The page: goals, figures, machine."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from .goals import Outcome
from .peers import PEERS
from .peers.base import Peer
from .results import Results, percentile
from .workloads import Section
from .workloads.base import Workload

PERCENTILES = {"median": 0.5, "90 %": 0.9, "99 %": 0.99, "99.9 %": 0.999}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def goals(outcomes: Iterable[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        ratio = "" if outcome.ratio is None else f"{outcome.ratio:.2f}×"
        reached = {True: "yes", False: "**no**", None: ""}[outcome.reached]
        ours, theirs = (
            "" if each is None else figure(each) for each in (outcome.ours, outcome.theirs)
        )
        rows.append([outcome.title, ours, theirs, ratio, outcome.goal, reached, outcome.note])
    return table(["workload", "ours", "beside", "ratio", "goal", "reached", ""], rows)


def section(found: Section, results: Results) -> str:
    """Peers by workloads, the fewer of them as columns; the first peer's figure is 1×."""
    units = {workload.unit for workload in found.workloads}
    parts = [f"## {found.title}", "", f"{found.note} Medians, {', '.join(units)}.", ""]
    keys = dict.fromkeys(key for workload in found.workloads for key in workload.peers)
    lines = [["", *(workload.title for workload in found.workloads)]]
    for key in keys:
        cells = (_cell(workload, key, results) for workload in found.workloads)
        lines.append([PEERS[key].title, *cells])
    if len(found.workloads) > len(keys):
        lines = [list(line) for line in zip(*lines, strict=True)]
    parts.append(table(lines[0], lines[1:]))
    return "\n".join(parts)


def _cell(workload: Workload, peer: str, results: Results) -> str:
    if peer not in workload.peers:
        return ""
    value = results.median(workload.key, peer)
    if value is None:
        return results.why_not(workload.key, peer).split(":")[0]
    low, high = results.spread(workload.key, peer)
    first = results.median(workload.key, workload.peers[0])
    ratio = f" ({value / first:.2f}×)" if first else ""
    return f"{figure(value)}{ratio}<br>{figure(low)}–{figure(high)}"


def percentiles(workload: Workload, results: Results) -> str:
    rows = []
    for key in workload.peers:
        times = results.times(workload.key, key)
        if times:
            cells = [figure(percentile(times, share)) for share in PERCENTILES.values()]
            rows.append([PEERS[key].title, *cells, f"{len(times):,}"])
    return table(["", *PERCENTILES, "times taken"], rows)


def left_out(results: Results) -> str:
    """The peers that have no figures, and why."""
    lines = [f"- {PEERS[key].title}: {reason}" for key, reason in results.missing.items()]
    for (workload, key), reason in results.failed.items():
        lines.append(f"- {PEERS[key].title}, {workload}: {reason.splitlines()[-1]}")
    return "\n".join(lines or ["- none"])


def set_ups(peers: Iterable[Peer]) -> str:
    rows = [[peer.title, " ".join((inspect.getdoc(peer) or "").split())] for peer in peers]
    return table(["", "as its documentation advises"], rows)


def facts(found: dict[str, str]) -> str:
    return table(["", ""], found.items())
