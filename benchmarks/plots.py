"""The plots: each as PNG and as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .peers import PEERS
from .report import figure
from .results import Results
from .workloads import Section
from .workloads.base import Workload
from .workloads.latency import HandOff
from .workloads.transfer import Transfer


def draw(sections: Sequence[Section], results: Results, folder: Path) -> list[Path]:
    """Draw what there are figures for. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    # The same figures give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    by_title = {section.title: section.workloads for section in sections}
    drawn = [
        _save(folder / "payload-sizes", *_payloads(by_title.get("Payload sizes", ()), results)),
        _save(folder / "consumers", *_consumers(by_title.get("Consumers", ()), results)),
        _save(folder / "hand-off", *_hand_offs(by_title.get("Hand-off", ()), results)),
        _save(folder / "latency", *_latency(by_title.get("Hand-off", ()), results)),
    ]
    return [path for path in drawn if path]


#: A line's label, and its points.
Lines = dict[str, list[tuple[float, float]]]


def _payloads(workloads: Sequence[Workload], results: Results) -> tuple[Lines, dict[str, str]]:
    def rate(workload: Workload, median: float) -> tuple[float, float]:
        assert isinstance(workload, Transfer)
        return workload.payload, median * workload.payload / (1 << 20)

    return _medians(workloads, results, rate), {
        "title": "Throughput, one producer, one consumer",
        "xlabel": "bytes of an item",
        "ylabel": "MB/s",
    }


def _consumers(workloads: Sequence[Workload], results: Results) -> tuple[Lines, dict[str, str]]:
    def rate(workload: Workload, median: float) -> tuple[float, float]:
        assert isinstance(workload, Transfer)
        return workload.consumers, median

    return _medians(workloads, results, rate), {
        "title": "Throughput, one producer, items of 100 bytes",
        "xlabel": "consumers",
        "ylabel": "items/s",
    }


def _hand_offs(workloads: Sequence[Workload], results: Results) -> tuple[Lines, dict[str, str]]:
    def median(workload: Workload, median: float) -> tuple[float, float]:
        assert isinstance(workload, HandOff)
        return workload.waiters, median

    several = _medians(workloads, results, median)
    return {label: points for label, points in several.items() if len(points) > 1}, {
        "title": "From a put to the return of a get that waits, median",
        "xlabel": "consumers that wait",
        "ylabel": "µs",
    }


def _latency(workloads: Sequence[Workload], results: Results) -> tuple[Lines, dict[str, str]]:
    lines: Lines = {}
    for workload in workloads[:1]:  # with one consumer that waits
        for key in workload.peers:
            times = results.times(workload.key, key)
            # The share of times that are longer: 1 at the left, the tail at the right.
            points = [(time, 1 - index / len(times)) for index, time in enumerate(times)]
            if points:
                lines[PEERS[key].title] = points
    return lines, {
        "title": "From a put to the return of the one get that waits",
        "xlabel": "µs",
        "ylabel": "share of the times that are longer",
    }


def _medians(
    workloads: Sequence[Workload],
    results: Results,
    point: Callable[[Workload, float], tuple[float, float]],
) -> Lines:
    lines: Lines = {}
    for workload in workloads:
        for key in workload.peers:
            median = results.median(workload.key, key)
            if median is not None:
                lines.setdefault(PEERS[key].title, []).append(point(workload, median))
    return lines


def _save(path: Path, lines: Lines, labels: dict[str, str]) -> Path | None:
    """The path, without a suffix, of what was saved; None when there is nothing to draw."""
    if not lines:
        return None
    from matplotlib import pyplot

    picture, axes = pyplot.subplots(figsize=(9, 5.5), layout="constrained")
    for label, points in lines.items():
        ours = label.startswith("pressure_mp")
        marker = "o" if len(points) < 50 else ""
        axes.plot(*zip(*points, strict=True), label=label, marker=marker, lw=2.5 if ours else 1.2)
    axes.set(xscale="log", yscale="log", **labels)
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    picture.savefig(path.with_suffix(".png"), dpi=120)
    picture.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    pyplot.close(picture)
    return path


def _plain(value: float, _: Any) -> str:
    return figure(value)
