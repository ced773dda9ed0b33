"""How often an operation waits for the server is what docs/performance.md says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import started
from programs import round_trips as program

DOCUMENT = Path(__file__).parents[2] / "docs" / "performance.md"


def said():
    """The table: operations, and how many round trips each takes."""
    section = DOCUMENT.read_text().partition("\n## Round trips\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|`]*?) \| (\d+)", section.replace("`", ""), re.MULTILINE)
    return {operation: int(number) for operation, number in rows}


def counted(server, name):
    run = subprocess.run(
        [sys.executable, program.__file__, server.url, name],
        env=started.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split("\t") for line in run.stdout.splitlines())
    return {operation: int(number) for operation, number in rows}


def test_each_operation_takes_the_round_trips_that_are_said(own_server, name):
    counted(own_server, name)  # from then on the server has the scripts
    assert counted(own_server, name) == said()
