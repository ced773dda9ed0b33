"""Runs of the command `pressure-mp` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import started
from waiting import LIMIT, has_ended, until

MAIN = "from pressure_mp.cli import main; main()"
LOSSY = "from cli import faulty; faulty.lossy_main()"
ENDLESS = "from cli import faulty; faulty.endless_main()"

#: The arguments for the demo of which most is tested.
PIPELINE = ("demo", "pipeline")

#: What programs the tests need is one of these lines, over and over: 6 tokens each.
LINE = "total = total + amount\n"
LINES = 2000


#: What a shell does for a program in the foreground, and for one in the background.
HEARS_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
IGNORES_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "


def python(code: str, *args: object, first: str = HEARS_INTERRUPTS) -> list[str]:
    """The command line that runs ``code`` with warnings as errors."""
    return [sys.executable, "-W", "error", "-c", first + code, *map(str, args)]


def started_by(method: str, *args: object, main: str = MAIN) -> list[str]:
    """The command, with that start method as multiprocessing's default."""
    choose = f"import multiprocessing; multiprocessing.set_start_method({method!r}); "
    return python(choose + main, *args)


def environment(name: str) -> dict[str, str]:
    """Key names in the broker begin with ``name``."""
    return started.environment(PRESSURE_PREFIX=name)


def finished(command: Sequence[str], name: str, limit: float = 100) -> subprocess.CompletedProcess:
    """Run it to its end."""
    return subprocess.run(
        command, env=environment(name), capture_output=True, text=True, timeout=limit, check=False
    )


def write_programs(directory: Path, files: int) -> Path:
    """Work for the demo: 12,000 tokens in each file."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        (directory / f"program{number}.py").write_text(LINE * LINES)
    return directory


class Run:
    """A run of the command that goes on, the leader of a process group of its own."""

    def __init__(self, command: Sequence[str], name: str) -> None:
        self.process = subprocess.Popen(
            command,
            env=environment(name),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._descendants: set[psutil.Process] = set()

    def line_with(self, pattern: str) -> str:
        """Wait for such a line of its output."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if re.search(pattern, line):
                return line
        raise AssertionError(f"no line with {pattern!r}: {self.process.communicate()[1]}")

    def children(self, number: int) -> list[psutil.Process]:
        """Wait until it has so many children; they, by age."""

        def found() -> list[psutil.Process]:
            children = psutil.Process(self.process.pid).children()
            return children if len(children) >= number else []

        children: list[psutil.Process] = until(found)
        self.note_descendants()
        return sorted(children, key=lambda child: (child.create_time(), child.pid))

    def note_descendants(self) -> None:
        """Note its descendants that exist now: they are to be gone in the end."""
        self._descendants |= set(psutil.Process(self.process.pid).children(recursive=True))

    def interrupt(self) -> None:
        """Do what Ctrl-C in a terminal does: each process of the group gets the signal."""
        self.note_descendants()
        os.killpg(self.process.pid, signal.SIGINT)

    def outcome(self, limit: float = LIMIT) -> tuple[int, str, str]:
        """Wait for its end: exit status, the rest of the output, the errors."""
        output, errors = self.process.communicate(timeout=limit)
        return self.process.returncode, output, errors

    def nothing_is_left(self) -> None:
        """Wait until all its descendants are gone."""
        assert self._descendants, "the test has not looked for descendants"
        until(lambda: all(map(has_ended, self._descendants)))


@contextmanager
def running(command: Sequence[str], name: str) -> Iterator[Run]:
    """A run that the test ends, one way or another."""
    run = Run(command, name)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.communicate()
