"""The command itself: its version, its help, missing libraries and wrong arguments."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import click
import pytest
from cli.runs import MAIN, PIPELINE, finished, python

import pressure_mp._version
from pressure_mp.cli import statuses
from pressure_mp.cli.app import app


def test_the_installed_command_tells_its_version():
    command = Path(sysconfig.get_path("scripts"), "pressure-mp")
    answer = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout == f"pressure-mp, version {pressure_mp._version.__version__}\n"


@pytest.mark.parametrize("library", ["click", "rich"])
def test_without_its_libraries_it_says_how_to_install_them(name, library):
    block = f"import sys; sys.modules[{library!r}] = None; "
    run = finished(python(block + MAIN, "demo"), name)
    assert run.returncode == 2
    assert run.stderr == (
        f"pressure-mp needs {library}, which is not installed: pip install 'pressure_mp[cli]'\n"
    )
    assert run.stdout == ""


@pytest.mark.parametrize("module", ["rich.live", "click.core", "pressure_mp.exceptions"])
def test_another_missing_module_is_not_taken_for_a_missing_library(name, module, tmp_path):
    (tmp_path / "program.py").touch()
    block = f"import sys; sys.modules[{module!r}] = None; "
    run = finished(python(block + MAIN, *PIPELINE, "--url", "redis://127.0.0.1:1", tmp_path), name)
    assert run.returncode == 1
    assert f"import of {module} halted" in run.stderr
    assert "pip install" not in run.stderr


@pytest.mark.parametrize("module", ["pressure_mp.cli", "pressure_mp.cli.demos.processes"])
def test_neither_the_entry_point_nor_a_demos_child_process_imports_the_libraries(name, module):
    code = f"import sys, {module}; print(sorted({{'click', 'rich'}} & set(sys.modules)))"
    assert finished(python(code), name).stdout == "[]\n"


@pytest.mark.parametrize("module", ["completion", "put_get", "serving"])
def test_what_writes_no_table_does_not_load_the_library_for_tables(name, module):
    code = f"import sys, pressure_mp.cli.{module}; print('rich.console' in sys.modules)"
    assert finished(python(code), name).stdout == "False\n"


def test_the_help_of_demo_shows_the_options_of_the_first_one_and_names_all(name):
    run = finished(python(MAIN, "demo", "--help"), name)
    assert run.returncode == 0
    for text in ("demo [OPTIONS]", "--url", "\n  pipeline ", "\n  fair "):
        assert text in run.stdout


def test_every_exit_status_is_in_the_document():
    page = (Path(__file__).parents[2] / "docs" / "command.md").read_text()
    listed = {int(status) for status in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert listed == {0, *(value for value in vars(statuses).values() if isinstance(value, int))}


def test_every_subcommand_and_demo_has_help():
    context = click.Context(app)
    commands = [app.get_command(context, name) for name in app.list_commands(context)]
    (demo,) = (command for command in commands if command.name == "demo")
    for command in (*commands, *demo.commands.values()):
        assert command.get_short_help_str()


def test_a_directory_that_is_missing_is_an_error(name, tmp_path):
    run = finished(python(MAIN, *PIPELINE, tmp_path / "missing"), name)
    assert run.returncode == 2
    assert f"Directory '{tmp_path / 'missing'}' does not exist" in run.stderr


def test_a_directory_without_programs_is_an_error(name, tmp_path):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "README.txt").write_text("nothing")
    run = finished(python(MAIN, *PIPELINE, tmp_path), name)
    assert run.returncode == 2
    assert f"no .py files below {tmp_path}" in run.stderr


@pytest.mark.parametrize(
    ("url", "complaint"),
    [("nonsense", "has no scheme"), ("memory://", "for the threads of one process")],
)
def test_a_url_that_cannot_do_is_an_error(name, tmp_path, url, complaint):
    run = finished(python(MAIN, *PIPELINE, "--url", url, tmp_path), name)
    assert run.returncode == 2
    assert complaint in run.stderr


def test_a_broker_that_is_not_there_is_an_error_without_a_traceback(name, tmp_path):
    (tmp_path / "program.py").touch()
    run = finished(python(MAIN, *PIPELINE, "--url", "redis://127.0.0.1:1", tmp_path), name)
    assert run.returncode == 1
    waits, error = run.stderr.splitlines()
    assert waits.startswith("trying for another ")
    assert error.startswith("Error: no broker answers at redis://127.0.0.1:1")
    assert "Traceback" not in run.stderr


def test_an_unknown_subcommand_is_compared_with_those_that_there_are(name):
    run = finished(python(MAIN, "requeu", "jobs"), name)
    assert run.returncode == 2
    assert "There is no subcommand 'requeu'. Did you mean requeue or resume?" in run.stderr
    assert "Did you mean" not in finished(python(MAIN, "xyzzy"), name).stderr


def test_an_option_before_the_subcommand_is_an_error_that_says_where_it_is_written(name):
    run = finished(python(MAIN, "--url", "redis://127.0.0.1:1", "ls"), name)
    assert run.returncode == 2
    assert "written after it: pressure-mp ls --url URL" in run.stderr


def test_an_unknown_demo_is_an_error_that_names_the_demos(name):
    run = finished(python(MAIN, "demo", "nope"), name)
    assert run.returncode == 2
    assert "There is no demo 'nope'; there are tour, pipeline, fair." in run.stderr
