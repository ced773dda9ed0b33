"""``pressure-mp worker``: the same as ``python -m pressure_mp.worker``."""

from __future__ import annotations

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
    short_help="Run the calls of an executor, or the handlers of a queue of tasks.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def worker(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Run the calls of an executor, or the handlers of a queue of tasks."""
    from ..executor import program

    context.exit(program.main(arguments, prog="pressure-mp worker"))
