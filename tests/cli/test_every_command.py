"""Every command that there is: in a narrow terminal, in one that can do little, without one, and
with an output that no process reads."""

from __future__ import annotations

import json
import re
import warnings

import click
import pytest
from cli.conditions import Runs
from cli.runs import environment

from pressure_mp import Queue, RejectedItemWarning, TaskQueue
from pressure_mp.cli.app import app

#: These go on until they are ended; and the demos have tests of their own, in a terminal and not.
LASTING = ("serve", "worker", "dashboard", "demo")
#: The value that is given for an argument, by the argument's name.
VALUES = {
    "name": "jobs",
    "names": "jobs",
    "source": "jobs",
    "target": "other",
    "pattern": "*",
    "rate": "9/s",
}
#: What a command needs besides.
MORE = {
    "get": ["-n", "1"],
    "top": ["-n", "1"],
    "requeue": ["--all"],
    "drop": ["--all"],
    "drain": ["--timeout", "0"],
}
#: How they end that do not end well on a broker that is no database, or where something is left.
STATUSES = {
    **dict.fromkeys(("postgres install", "postgres upgrade", "postgres uninstall"), 2),
    "drain": 3,
    "doctor": 5,
}
#: The output of these has columns.
TABLES = {"ls", "workers", "tasks", "schedule"}
#: Nothing is written by these, unless it is asked for.
SILENT = {"put", "shutdown", "delete", "export", "drain", "pause", "resume", "limit"}


def leaves(group=app, path=()):
    """Each command that is none of others, by its whole name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


EVERY = dict(leaves())
SHORT = {name: one for name, one in EVERY.items() if name.split()[0] not in LASTING}
REPORTING = [
    name
    for name, command in SHORT.items()
    if any(param.name == "in_json" for param in command.params) and name != "put"
]


@pytest.fixture(scope="module")
def runs():
    found = Runs()
    yield found
    found.end()


@pytest.fixture
def environ(name):
    """Of a terminal that says itself how wide it is."""
    found = {**environment(name), "TERM": "xterm"}
    for variable in ("COLUMNS", "LINES"):  # which pytest-xdist sets
        found.pop(variable, None)
    return found


@pytest.fixture
def run(runs, valkey, name, environ, tmp_path):
    """Runs a command by its whole name, on queues that were just made."""
    exported = tmp_path / "exported"
    environ["PRESSURE_URL"] = valkey.url

    def run(where, whole, *more, **variables):
        fill(valkey.url, name)
        arguments = [*MORE.get(whole, ()), *more]
        for param in EVERY[whole].params:
            if isinstance(param, click.Argument) and param.required:
                arguments.append(value_of(param, exported))
            elif param.name == "yes" or param.name == "confirm":
                arguments.append("--yes")
        if whole in ("tasks", "pause", "resume", "limit", "schedule"):
            arguments[arguments.index("jobs")] = "tasks"
        if whole == "import":
            runs.run("nowhere", environ, "export", "jobs", exported)
        return runs.run(where, {**environ, **variables}, *whole.split(), *arguments)

    return run


def value_of(param, exported):
    if isinstance(param.type, click.Choice):
        return param.type.choices[0]
    if isinstance(param.type, click.Path):
        return exported
    if param.name == "role":
        return "somebody"
    return VALUES[param.name]


def fill(url, prefix):
    """Queues with some of all that is shown."""
    options = {"url": url, "prefix": prefix}
    for kind, name in ((Queue, "jobs"), (Queue, "other"), (TaskQueue, "tasks")):
        with kind(name=name, **options) as queue:
            queue.delete()
    jobs = Queue(9, "jobs", serializer="text", **options)
    jobs.put_many(["an item that is longer than a narrow terminal", "short"])
    with warnings.catch_warnings(), Queue(9, "jobs", serializer="json", **options) as other:
        warnings.simplefilter("ignore", RejectedItemWarning)
        with pytest.raises(Exception, match="decode"):
            other.get()
    jobs.put("more")
    jobs.close()
    with TaskQueue("tasks", **options) as tasks:
        tasks.put_many(["a task that is longer than a narrow terminal", "buried"])
        tasks.take().bury(error="an error that is longer than a narrow terminal")
        tasks.every(3600, "more", name="a schedule whose name is longer than a narrow terminal")


@pytest.mark.parametrize("whole", EVERY)
def test_its_help_fits_a_narrow_terminal(runs, environ, whole):
    ended = runs.run("terminal", environ, *whole.split(), "--help")
    assert ended.status == 0
    assert "Traceback" not in ended.output
    assert whole == "worker" or not [line for line in ended.output.splitlines() if len(line) > 40]


@pytest.mark.parametrize("whole", SHORT)
def test_a_command_works_in_a_narrow_terminal(run, whole):
    ended = run("terminal", whole)
    assert ended.status == STATUSES.get(whole, 0), ended.output
    assert "Traceback" not in ended.output
    assert ended.output or whole in SILENT
    if whole in TABLES:
        rows = re.sub(r"\x1b\[[0-9;]*m", "", ended.output).splitlines()  # bold, and not
        assert all(len(row) <= 40 for row in rows), ended.output


@pytest.mark.parametrize("whole", SHORT)
def test_a_terminal_that_can_do_little_is_sent_text_alone(run, whole):
    ended = run("terminal", whole, TERM="dumb")
    assert ended.status == STATUSES.get(whole, 0), ended.output
    assert "\x1b" not in ended.output


@pytest.mark.parametrize("whole", SHORT)
def test_a_command_works_without_a_terminal(run, whole):
    ended = run("nowhere", whole)
    assert ended.status == STATUSES.get(whole, 0), ended.errors
    assert "\x1b" not in ended.output + ended.errors
    assert "Traceback" not in ended.errors
    assert ended.output or whole in SILENT or ended.status == 2


@pytest.mark.parametrize("whole", REPORTING)
def test_its_report_as_json_is_one_value_on_a_line(run, whole):
    ended = run("nowhere", whole, "--json")
    assert ended.status == STATUSES.get(whole, 0), ended.errors
    told = ended.errors if whole == "export" else ended.output
    assert [json.loads(line) for line in told.splitlines()]


@pytest.mark.parametrize("whole", SHORT)
def test_a_command_writes_no_error_when_its_output_has_no_reader(run, whole):
    ended = run("unread", whole)
    if STATUSES.get(whole) == 2:
        assert ended.status == 2
    elif whole in SILENT:
        assert ended.status == STATUSES.get(whole, 0), ended.errors
    else:
        assert (ended.status, ended.errors) == (141, "")
