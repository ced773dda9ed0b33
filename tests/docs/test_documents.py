"""What the documents say is true: their programs run, their links lead somewhere."""

from __future__ import annotations

import ast
import difflib
import os
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import engines
import pytest
from waiting import LIMIT, until

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language):
    for document in DOCUMENTS:
        for number, (found, text) in enumerate(BLOCK.findall(document.read_text()), 1):
            if found == language:
                yield pytest.param(text, id=f"{document.name}-{number}")


def names(document):
    return document.name


@pytest.mark.parametrize("program", list(blocks("python")))
def test_the_python_in_the_documents_runs(program, valkey, running, name, tmp_path, request):
    path = tmp_path / "program.py"
    path.write_text(program)
    for library in ("sqlalchemy", "opentelemetry.sdk"):
        if library.partition(".")[0] in program:
            pytest.importorskip(library)
    page = request.node.callspec.id.partition(".")[0]  # of an engine, or of all
    url = running.chosen(page).url if page in engines.NAMES else valkey.url
    environ = {**os.environ, "PRESSURE_URL": url, "PRESSURE_PREFIX": name}
    run = subprocess.run(
        [sys.executable, path], env=environ, capture_output=True, text=True, timeout=2 * LIMIT
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    if "executor.md" in request.node.name:
        assert run.stderr == ""  # workers and queues end without a warning
    client = valkey.client()

    def lasting_keys():
        """Those that do not end by themselves, as the last reply to a process that was killed."""
        return [key for key in client.scan_iter(match=f"{name}*") if client.pttl(key) == -1]

    until(lambda: not lasting_keys())
    client.close()


COMMAND_PAGE = ROOT / "docs" / "command.md"
#: Of that page, and of the page that measures it, each block of commands, and what they write.
COMMANDS = [
    block
    for page in (COMMAND_PAGE, ROOT / "docs" / "performance.md")
    for block in re.findall(
        r"^```(?:ba)?sh\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", page.read_text(), re.M | re.S
    )
]


@pytest.mark.parametrize(("commands", "shown"), COMMANDS, ids=range(len(COMMANDS)))
def test_the_commands_on_their_page_write_the_output_that_the_page_shows(
    commands, shown, valkey, name, tmp_path
):
    scripts = sysconfig.get_path("scripts")
    environ = {**os.environ, "PRESSURE_URL": valkey.url, "PRESSURE_PREFIX": name}
    environ["PATH"] = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-e", "-c", commands],
        env=environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=2 * LIMIT,
    )
    assert (run.returncode, run.stdout) == (0, shown)


def test_the_diff_in_the_readme_is_the_diff_of_the_examples():
    before, after = (
        (ROOT / "examples" / f"legacy_{when}.py").read_text().splitlines()
        for when in ("before", "after")
    )
    diff = list(difflib.unified_diff(before, after, n=0, lineterm=""))[3:]
    (shown,) = (
        text
        for language, text in BLOCK.findall((ROOT / "README.md").read_text())
        if language == "diff"
    )
    assert shown.splitlines() == diff


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_links_lead_to_files(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", BLOCK.sub("", document.read_text())):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_every_table_is_whole(document):
    """It has a line under its head, as many cells in each row, and no line in the midst of it."""
    text = BLOCK.sub("", document.read_text())
    for table in re.findall(r"(?:^ *\|.*\n)+", text, re.MULTILINE):
        head, *rows = table.splitlines()
        cells = [len(re.findall(r"(?<!\\)\|", row)) for row in (head, *rows)]
        assert rows, head
        assert re.fullmatch(r"[ |:-]+", rows[0]), f"no table begins with {head!r}"
        assert len(set(cells)) == 1, head


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_every_command_is_one_that_is_run_somewhere(document):
    """The commands of the environments ``docs`` and of CI, and those that the tests run."""
    known = [
        "python3 -m venv .venv && .venv/bin/pip install '.[embedded,cli]'"
        " && .venv/bin/pressure-mp demo",  # test_commands.py
        "python3 -m venv .venv && .venv/bin/pip install tox tox-uv && .venv/bin/tox",  # .ci/run
        "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]'",  # test_commands.py
        ".venv/bin/pytest -n 4 tests/contract",  # test_commands.py
        ".venv/bin/tox",  # .ci/run
        "export PRESSURE_URL=redis://broker.example:6379",  # a setting, not a program
        "export PRESSURE_URL=sqlite://$HOME/pressure-queues",  # below, in two terminals
        # test_tutorial.py
        "python3 -m venv .venv && .venv/bin/pip install 'pressure_mp[cli,dashboard]' httpx pytest",
        ".venv/bin/python jobs.py",
        ".venv/bin/uvicorn web:app",
        """curl localhost:8000/reports --json '{"text": "one two three"}'""",
        ".venv/bin/pressure-mp tasks reports --state buried",
        ".venv/bin/pressure-mp requeue reports --all",
        "PRESSURE_URL=memory:// .venv/bin/pytest",
        # tests/executor/test_program.py
        "pressure-mp worker shop.orders:orders --processes 2 --max-memory 500 --log-json",
        "pressure-mp worker reports -p 8 --url redis://broker.example:6379",
        "python -m pressure_mp.worker reports -p 8 --url redis://broker.example:6379",
    ]
    for language, text in BLOCK.findall(document.read_text()):
        if language == "sh" and document != COMMAND_PAGE:
            for line in text.splitlines():
                assert line in known


def shell_blocks(document):
    return [text.strip() for language, text in BLOCK.findall(document) if language == "sh"]


def test_the_readme_begins_with_the_demo_and_ends_with_what_ci_runs():
    first, *_, last = shell_blocks((ROOT / "README.md").read_text())
    assert first.endswith("pressure-mp demo")
    assert last in (ROOT / ".ci" / "run").read_text().replace("install -q tox", "install tox")


class Terminal:
    """An interpreter that is told what a document shows behind ``>>>``."""

    def __init__(self, environ):
        self.python = subprocess.Popen(
            [sys.executable, "-i", "-q", "-u"],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def shows(self, block):
        for line in block.splitlines():
            if line.startswith(">>> "):
                print(line.removeprefix(">>> "), file=self.python.stdin, flush=True)
            else:
                assert self.python.stdout.readline().rstrip() == line

    def ends(self):
        self.python.communicate()
        return self.python.returncode


def test_two_terminals_show_what_the_readme_shows(tmp_path):
    readme = (ROOT / "README.md").read_text()
    (setting,) = re.findall(r"^export PRESSURE_URL=(sqlite:.*)$", readme, re.MULTILINE)
    environ = {**os.environ, "PRESSURE_URL": setting.replace("$HOME", str(tmp_path))}
    put, get, again = (text for language, text in BLOCK.findall(readme) if language == "pycon")
    first, second = Terminal(environ), Terminal(environ)
    first.shows(put)
    second.shows(get)
    assert second.ends() == -signal.SIGKILL
    first.shows(again)
    assert first.ends() == 0


def test_the_protocol_page_names_every_key_and_every_operation():
    from pressure_mp.engines.redis import keys, scripts

    page = (ROOT / "docs" / "protocol.md").read_text()
    assert keys.kept(":prefix", "name").decode().removeprefix(":prefix:name") + "lane`" in page
    for suffix in {**keys.PROTOCOL, **keys.OWN}.values():
        named = suffix or "prefix:name"
        pattern = re.sub("producer|consumer", "…", named) if named.endswith("free") else named
        assert f"`{named}`" in page or f"`{pattern}`" in page, named
    for operation in scripts.load("fifo"):
        documented = {"open": "create"}.get(operation, operation)
        assert re.search(rf"^\| [^|]*\b{documented}\b", page, re.MULTILINE), operation


def test_the_protocol_page_names_every_key_and_every_operation_of_tasks():
    from pressure_mp.engines.redis import keys, scripts

    page = (ROOT / "docs" / "protocol.md").read_text().partition("\n## Tasks\n")[2]
    for part in keys.TASKS:
        assert f"`{part}" in page, part
    for operation in scripts.load("tasks"):
        assert re.search(rf"\b{operation}\b", page), operation


def test_every_guarantee_names_tests_that_exist():
    defined = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        defined |= set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))
    page = (ROOT / "docs" / "guarantees.md").read_text()
    rows = [row for row in page.splitlines() if row.startswith("| ") and "---" not in row]
    for row in rows:
        named = set(re.findall(r"`(test_\w+)`", row))
        assert named or row.endswith("| shown by |"), row
        assert named <= defined, named - defined


def test_the_states_of_a_task_are_drawn_from_their_table(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import draw_states

    again = "out of date: python docs/draw_states.py"
    assert (ROOT / "docs" / "task-states.svg").read_text() == draw_states.draw(), again
    page = (ROOT / "docs" / "task-reference.md").read_text()
    assert draw_states.write(page) == page, again


def test_the_reference_of_tasks_names_every_state_and_every_error_of_a_task():
    from pressure_mp import exceptions, states

    page = (ROOT / "docs" / "task-reference.md").read_text()
    for letter, word in states.NAMES.items():
        assert re.search(rf"^\| {letter} \| {word} \|", page, re.MULTILINE), word
    for error in vars(exceptions).values():
        if isinstance(error, type) and issubclass(error, exceptions.TaskError):
            assert f"`{error.__name__}`" in page, error


#: The methods of a logger, and the levels that they log at.
LEVELS = {name: name for name in ("debug", "info", "warning", "error", "critical")} | {
    "exception": "error"
}


def logged():
    """The level and the message of each call of the package's logger."""
    for path in (ROOT / "pressure_mp").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(ast.Attribute(ast.Name("_log"), method), [text, *_]):
                    yield LEVELS[method], ast.literal_eval(text)
                case ast.Assign([target], ast.Call(ast.Attribute(_, "getLogger"))):
                    assert ast.unparse(target) == "_log", path


def test_the_monitoring_page_has_all_that_is_logged():
    page = (ROOT / "docs" / "monitoring.md").read_text()
    listed = re.findall(r"^\| (\w+) \| `(.+)` \| .", page.partition("\n## Logs\n")[2], re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(logged())


def test_the_differences_page_has_no_loose_ends():
    assert "@@" not in (ROOT / "docs" / "differences.md").read_text()
