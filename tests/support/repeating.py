"""A run that fails says how to repeat it: the command for each test that failed, the seed, and what
the same process ran before."""

from __future__ import annotations

import os
import random
import shlex
import sys
from collections import defaultdict
from typing import Any

import pytest

#: What chooses the tests' servers, where it was set.
VARIABLES = ("PRESSURE_TEST_SERVERS", "PRESSURE_TEST_POSTGRES", "CI")


class Repeating:
    """A plugin of the process that prints the report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._ran: dict[str, list[str]] = defaultdict(list)  # by process
        self._failed: dict[str, str] = {}  # the test, and the process that ran it

    def pytest_report_header(self) -> str:
        return f"seed of the random histories: {self._config.option.hypothesis_seed}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        node: Any = getattr(report, "node", None)  # set by pytest-xdist
        process = node.gateway.id if node is not None else "alone"
        if report.when == "setup":
            self._ran[process].append(report.nodeid)
        if report.failed:
            self._failed[report.nodeid] = process

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._failed:
            return
        terminalreporter.section("to repeat what failed")
        command = self._command()
        for test, process in self._failed.items():
            terminalreporter.write_line(f"{command} {shlex.quote(test)}")
            if self._ran[process][0] != test and hasattr(self._config, "cache"):
                order = self._order(process, test)
                terminalreporter.write_line(f"    after what ran before it: {command} @{order}")

    def _command(self) -> str:
        seen = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
        python = "python{}.{}".format(*sys.version_info)
        options = [f"--hypothesis-seed={self._config.option.hypothesis_seed}"]
        if self._config.option.histories:
            options.append(f"--histories={self._config.option.histories}")
        given = list(self._config.invocation_params.args)
        if "-m" in given:
            options += ["-m", shlex.quote(given[given.index("-m") + 1])]
        return " ".join([*seen, python, "-m", "pytest", *options])

    def _order(self, process: str, test: str) -> str:
        """A file that pytest reads, of what the process ran, up to a test."""
        ran = self._ran[process]
        folder = self._config.cache.mkdir("ran-before")
        version = "py{}{}".format(*sys.version_info)
        number = list(self._failed).index(test) + 1
        file = folder / f"{version}-{number}.txt"
        file.write_text("\n".join(ran[: ran.index(test) + 1]) + "\n", encoding="utf-8")
        return os.path.relpath(file)


def choose_seed(config: pytest.Config) -> None:
    """The whole run has one seed, also in the processes of pytest-xdist."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.randrange(2**32))
