"""What the command consists of: each subcommand and each demo is registered here."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from .._version import __version__
from ..exceptions import PressureError
from .demos.crew import ProcessFailed
from .demos.fair import fair
from .demos.pipeline import pipeline
from .worker import worker

INTERRUPTED = 130  # as a shell reports a program that Ctrl-C ended


class App(click.Group):
    """Turns what any subcommand may raise into a message and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except (PressureError, ProcessFailed) as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            raise _failure(error) from error

    def main(self, *args: Any, **settings: Any) -> Any:
        try:
            return super().main(*args, **settings)
        except OSError as error:  # of what is written before a subcommand runs, as by --help
            failure = _failure(error)
            failure.show()
            sys.exit(failure.exit_code)


def _failure(error: OSError) -> click.ClickException:
    """What to say when a file cannot be used, or the standard output."""
    if error.filename is not None:
        return click.ClickException(str(error))
    # What could not be written is tried again when the interpreter ends.
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return click.ClickException(f"cannot write to the standard output: {error.strerror or error}")


class Demos(click.Group):
    """Runs the first demo when the first argument does not name one: it is the demo's own."""

    def __init__(self, first: click.Command, **settings: Any) -> None:
        super().__init__(**settings)
        self.first = first
        self.add_command(first)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [str(self.first.name), *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return self.first.collect_usage_pieces(ctx)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.first.format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.first.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=App)
@click.version_option(__version__, prog_name="pressure-mp")
def app() -> None:
    """Queues of multiprocessing, across machines, on Redis or Valkey."""


demo = Demos(pipeline, name="demo", short_help="Show the queues at work.")
demo.add_command(fair)

app.add_command(demo)
app.add_command(worker)
