"""The command demo: each demo is registered here."""

from __future__ import annotations

from typing import Any

import click

from .fair import fair
from .pipeline import pipeline
from .processes import ProcessFailed
from .tour import tour


class Demos(click.Group):
    """Runs the first demo when the first argument names no demo: the argument is the demo's own."""

    def __init__(self, first: click.Command, **settings: Any) -> None:
        super().__init__(**settings)
        self.first = first
        self.add_command(first)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ProcessFailed as error:
            raise click.ClickException(str(error)) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            if args and not args[0].startswith("-"):
                ctx.fail(f"There is no demo {args[0]!r}; there are {', '.join(self.commands)}.")
            args = [str(self.first.name), *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return self.first.collect_usage_pieces(ctx)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.first.format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.first.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


demo = Demos(tour, name="demo", short_help="Show queues in example programs.")
demo.add_command(pipeline)
demo.add_command(fair)
