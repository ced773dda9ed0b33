"""Whole programs, with the queues of each."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ..peers.base import Peer
from ..processes import CaseFailed
from ..server import Site
from .base import Measured, Workload

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = {"pressure-default": "legacy_after.py", "mp-queue": "legacy_before.py"}
CONTENT = bytes(1000)
MODULES = {"pressure-default": "pressure_mp", "mp-queue": "multiprocessing"}


def _run(command: list[str], site: Site, count: int) -> Measured:
    """Run a program from its start to its end; it says that it has done all."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PRESSURE_URL": site.url},
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - begin
    if done.returncode or f"all {count} " not in done.stdout:
        raise CaseFailed(done.stderr)
    return Measured(count / seconds, seconds)


@dataclass(frozen=True)
class Checksums(Workload):
    """The program that computes checksums of files, from its start to its end."""

    files: int = 3000

    @property
    def unit(self) -> str:
        return "items/s"

    def counts(self, peer: Peer) -> tuple[int, int]:
        return self.files, self.files

    def run(self, peer: Peer, site: Site, count: int) -> Measured:
        with tempfile.TemporaryDirectory(dir=site.folder) as folder:
            for number in range(count):
                Path(folder, f"{number}").write_bytes(CONTENT)
            return _run([str(EXAMPLES / PROGRAMS[peer.key]), folder], site, count)


@dataclass(frozen=True)
class Program(Workload):
    """One of :mod:`benchmarks.programs`, from its start to its end."""

    items: int = 10_000

    @property
    def unit(self) -> str:
        return "items/s"

    def counts(self, peer: Peer) -> tuple[int, int]:
        return self.items, self.items

    def run(self, peer: Peer, site: Site, count: int) -> Measured:
        module = f"{__package__.partition('.')[0]}.programs.{self.key}"
        return _run(["-m", module, MODULES[peer.key], str(count)], site, count)
