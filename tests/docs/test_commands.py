"""README's and CONTRIBUTING's commands, in a copy of the checkout, as a new user runs them.

They install the package several times over, so they run in an environment of their own:
``tox -e docs``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.commands, pytest.mark.timeout(600)]


@pytest.fixture
def checkout(tmp_path):
    """What a clone would have."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            target = tmp_path / "clone" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return tmp_path / "clone"


def shell(command, checkout):
    environ = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    run = subprocess.run(
        command, shell=True, cwd=checkout, env=environ, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def command(document, ending):
    (found,) = (line for line in document.read_text().splitlines() if line.endswith(ending))
    return found


def test_the_readmes_first_command_shows_the_demo(checkout):
    output = shell(command(checkout / "README.md", "pressure-mp demo"), checkout)
    assert "none is lost" in output
    assert "Equal: " in output


def test_the_contributing_page_sets_up_and_tests(checkout):
    setup = command(checkout / "CONTRIBUTING.md", "'.[dev]'")
    tests = command(checkout / "CONTRIBUTING.md", "pytest -n 4 tests/contract")
    # One file of these is enough to see that the command works; the others are run elsewhere.
    assert " passed" in shell(f"{setup} && {tests}/test_batches.py -q", checkout)
