"""The rounds: in each, every case of every workload, the peers of a workload taking turns."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field

from .peers import PEERS
from .peers.base import Peer
from .processes import CaseFailed
from .results import Results
from .server import Site
from .workloads.base import Workload

#: A trial that lasts this share of the time that a case is tuned to tells how long it will take.
ENOUGH = 0.25


@dataclass
class Run:
    site: Site
    workloads: list[Workload]
    peers: list[Peer]
    seconds: float
    results: Results = field(default_factory=Results)
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)
    _tuning: float = 0.0  # seconds of the round that went into finding out how many items to use

    def rounds(self, most: int, deadline: float) -> int:
        """Run up to so many rounds, as many as end before the deadline; how many they were."""
        self._leave_out_missing_peers()
        started = time.monotonic()
        for number in range(most):
            begin = time.monotonic()
            self._tuning = 0.0
            for workload in self.workloads:
                if number >= workload.rounds:
                    continue
                say(f"{time.monotonic() - started:5.0f} s, round {number + 1}: {workload.key}")
                for peer in _turned(self._of(workload), number):
                    self._case(workload, peer)
            took = time.monotonic() - begin - self._tuning
            if time.monotonic() + took > deadline and number + 1 < most:
                say(f"stopped after {number + 1} rounds: one takes {took:.0f} s")
                return number + 1
        return most

    def _leave_out_missing_peers(self) -> None:
        for peer in self.peers:
            reason = peer.missing()
            if reason:
                self.results.missing[peer.key] = reason
                say(f"left out: {peer.title}: {reason}")

    def _of(self, workload: Workload) -> list[Peer]:
        return [PEERS[key] for key in workload.peers if key not in self.results.missing]

    def _case(self, workload: Workload, peer: Peer) -> None:
        case = (workload.key, peer.key)
        if case in self.results.failed:
            return
        pinned = (
            self.site.on_one_processor() if workload.on_one_processor else nullcontext(self.site)
        )
        try:
            with pinned as site:
                if case not in self._counts:
                    begin = time.monotonic()
                    self._counts[case] = self._tune(workload, peer, site)
                    self._tuning += time.monotonic() - begin
                self.results.add(case, workload.run(peer, site, self._counts[case]))
        except CaseFailed as error:
            self.results.failed[case] = str(error).strip()
            say(f"failed: {workload.key}, {peer.title}: {error}")

    def _tune(self, workload: Workload, peer: Peer, site: Site) -> int:
        """How many items take the time that a case shall last."""
        fewest, most = workload.counts(peer)
        count = fewest
        while count < most:
            took = workload.run(peer, site, count).seconds
            if took >= ENOUGH * self.seconds:
                wanted = workload.times_as_long * self.seconds
                return max(fewest, min(most, math.ceil(count * wanted / took)))
            count = min(most, 8 * count)
        return most


def _turned(peers: list[Peer], number: int) -> Iterable[Peer]:
    """Each round begins with another peer."""
    first = number % max(1, len(peers))
    return peers[first:] + peers[:first]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
