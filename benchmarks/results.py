"""The figures of a run."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from .workloads.base import Measured

#: A workload's key and a peer's.
Case = tuple[str, str]


@dataclass
class Results:
    samples: dict[Case, list[Measured]] = field(default_factory=dict)
    #: Why a peer was not run at all, and why a case has no figure.
    missing: dict[str, str] = field(default_factory=dict)
    failed: dict[Case, str] = field(default_factory=dict)

    def add(self, case: Case, measured: Measured) -> None:
        self.samples.setdefault(case, []).append(measured)

    def median(self, workload: str, peer: str) -> float | None:
        found = self.samples.get((workload, peer))
        return statistics.median(each.value for each in found) if found else None

    def spread(self, workload: str, peer: str) -> tuple[float, float]:
        values = [each.value for each in self.samples[workload, peer]]
        return min(values), max(values)

    def times(self, workload: str, peer: str) -> list[float]:
        """Every single time that was taken, sorted."""
        found = self.samples.get((workload, peer), [])
        return sorted(time for each in found for time in each.times)

    def why_not(self, workload: str, peer: str) -> str:
        """Why a case has no figure."""
        if peer in self.missing:
            return self.missing[peer]
        if (workload, peer) in self.failed:
            return "failed"
        return "not run"


def percentile(times: list[float], share: float) -> float:
    """Of sorted times."""
    return times[min(len(times) - 1, int(share * len(times)))]
