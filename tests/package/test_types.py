"""What the type checkers mypy and pyright say of programs that use the package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support" / "typed"
RIGHT, WRONG = SUPPORT / "rightly.py", SUPPORT / "wrongly.py"

#: An error: its line, and its kind.
Found = list[tuple[int, str]]

#: mypy looks at conditions only when it is told to.
CONDITION = """# mypy: enable-error-code="truthy-bool"
# pyright: strict
from pressure_mp import aio

async def work(queue: aio.Queue[int]) -> None:
    if queue.empty():
        print("empty")
"""

#: A program that moves from the standard library, and has no annotations for its queues.
UNTYPED = """
from {module} import Queue

queue = Queue()
bounded = Queue(3)
queue.put("a")
item = queue.get()
item.anything()

def work(jobs: Queue) -> None:
    jobs.put(1)
    jobs.get().anything()

def untyped(jobs):
    mine = Queue()
    mine.put(jobs.get())
"""


def run(*command: str) -> str:
    """The output of a checker, which has no settings but those of its command line."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def mypy(program: Path) -> Found:
    printed = run(sys.executable, "-m", "mypy", "--config-file=", "--strict", str(program))
    errors = re.findall(r"^(.+?):(\d+): error: .*\[([\w-]+)\]$", printed, re.MULTILINE)
    assert len(errors) == printed.count(": error: "), printed
    assert {Path(where).name for where, _, _ in errors} <= {program.name}, printed
    return [(int(line), kind) for _, line, kind in errors]


def pyright(program: Path) -> Found:
    printed = run(
        *(sys.executable, "-m", "pyright", "--outputjson"),
        *("--pythonpath", sys.executable, str(program)),
    )
    found = json.loads(printed)["generalDiagnostics"]
    return [
        (one["range"]["start"]["line"] + 1, one.get("rule", one["message"]))
        for one in found
        if one["severity"] == "error"
    ]


CHECKERS = [mypy, pyright]


@pytest.fixture(params=CHECKERS, ids=lambda checker: checker.__name__)
def check(request: pytest.FixtureRequest) -> Callable[[Path], Found]:
    """Each checker in turn. In the environment ``types`` neither may be missing."""
    name = request.param.__name__
    if find_spec(name) is None:
        if os.environ.get("TOX_ENV_NAME") == "types":
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed: tox -e types has it")
    return request.param


def test_a_program_with_types_is_right(check):
    assert check(RIGHT) == []


def test_the_program_with_types_runs():
    run = subprocess.run([sys.executable, RIGHT], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_each_wrong_line_is_found_and_no_other(check):
    wrong = {n for n, line in enumerate(WRONG.read_text().splitlines(), 1) if "# wrong" in line}
    found = check(WRONG)
    assert {line for line, _ in found} == wrong, found


def test_a_condition_that_is_not_awaited_is_found(check, tmp_path):
    program = tmp_path / "condition.py"
    program.write_text(CONDITION)
    assert {line for line, _ in check(program)} == {6}


def test_a_program_without_types_is_asked_for_no_more_than_by_the_standard_library(check, tmp_path):
    found = []
    for module in ("queue", "pressure_mp"):
        program = tmp_path / f"with_{module}.py"
        program.write_text("# pyright: strict" + UNTYPED.format(module=module))
        found.append(check(program))
    assert set(found[1]) <= set(found[0])
    assert len(found[1]) < len(found[0])  # of queues without annotations nothing is asked
