"""The command: each subcommand is registered here."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Iterable
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from .._version import __version__
from ..exceptions import PressureError
from . import bash, statuses

__all__ = ["app", "bash"]  # bash only has to be imported

#: Every subcommand, in the sections and the order of the help, by its module, which is imported
#: when it is needed. There the function has the same name.
SECTIONS = {
    "Put and get": {"put_get": "put get"},
    "Look": {"inspection": "ls info peek why", "tasks": "workers tasks", "top": "top"},
    "Change and repair": {
        "configure": "configure pause resume limit",
        "scheduling": "schedule",
        "repair": "unlock requeue drop purge drain shutdown delete",
    },
    "Copy": {"transfer_commands": "copy move export import"},
    "Care for a broker": {
        "doctor": "doctor gc",
        "serving": "metrics dashboard serve",
        "postgres": "postgres",
    },
    "Run": {"serving": "worker", "demos.tour": "demo"},
}
COMMANDS = {
    name: module
    for section in SECTIONS.values()
    for module, names in section.items()
    for name in names.split()
}


#: The fewest and the most columns of the help.
_NARROWEST, _WIDEST = 30, 80


class _Help(click.HelpFormatter):
    """Fits a narrow terminal too: click's own is no narrower than 50 columns."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.width = max(min(shutil.get_terminal_size().columns, _WIDEST) - 2, _NARROWEST)

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        super().write_dl(rows, min(col_max, self.width // 2), col_spacing)


class _Context(click.Context):
    formatter_class = _Help


class App(click.Group):
    """Imports a subcommand, and turns its exceptions into a message and an exit status."""

    context_class = _Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        space = formatter.width - 6 - max(map(len, COMMANDS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                names = " ".join(section.values()).split()
                commands = {name: self.get_command(ctx, name) for name in names}
                formatter.write_dl(
                    [(name, one.get_short_help_str(space)) for name, one in commands.items() if one]
                )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[cmd_name]}", __package__)
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        found: click.Command = getattr(module, name)
        for command in (found, *getattr(found, "commands", {}).values()):
            command.context_class = _Context
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = "Options of a subcommand are written after it: pressure-mp ls --url URL"
            ctx.fail(f"{error.format_message()} {hint}")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            alike = difflib.get_close_matches(args[0], COMMANDS)
            hint = f" Did you mean {' or '.join(alike)}?" if alike else ""
            ctx.fail(f"There is no subcommand {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(statuses.INTERRUPTED)
        except BrokenPipeError:
            _drop_output()
            ctx.exit(statuses.READER_GONE)
        except (PressureError, OSError) as error:
            raise _failure(error) from error

    def main(self, *args: Any, **settings: Any) -> Any:
        try:
            return super().main(*args, **settings)
        except OSError as error:  # from output before a subcommand runs, as by --help
            failure = _failure(error)
            failure.show()
            sys.exit(failure.exit_code)


def _failure(error: PressureError | OSError) -> click.ClickException:
    """Make the message and the status for an error of the package; or for a file, or the standard
    output, that cannot be used."""
    if isinstance(error, PressureError):
        failure = click.ClickException(str(error))
        failure.exit_code = statuses.of(error)  # type: ignore[misc]  # it may be of an instance
        return failure
    if error.filename is not None:
        return click.ClickException(f"{error.filename}: {error.strerror or error}")
    _drop_output()
    return click.ClickException(f"cannot write to the standard output: {error.strerror or error}")


def _drop_output() -> None:
    """Drop output that could not be written: the interpreter would try it again at its end."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@click.group(
    cls=App, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="pressure-mp")
def app() -> None:
    """Queues of multiprocessing, across machines, on Redis, Valkey or PostgreSQL, or in a
    file.

    Each command has the option --url, which says where the broker (the server that keeps the
    queues) is; without it, PRESSURE_URL does, as for programs. Exit status: 0 the work is done, 1
    it failed, 2 wrong usage, 3 the time was up, 4 no such queue or task, 5 doctor found something
    that loses data, 130 Ctrl-C, 141 the program that reads the output has ended.
    """
