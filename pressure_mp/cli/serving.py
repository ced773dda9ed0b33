"""The command serve: run a private server in the foreground."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from ..engines.embedded.serving import become_server


@click.command()
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the data is kept; created if it does not exist. Without it, the data is gone when "
    "the server ends.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=6379,
    help="The port to listen at.",
)
@click.option(
    "--bind",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="The address to listen at; 0.0.0.0 for all. An address that other machines can reach "
    "needs a password.",
)
@click.option(
    "--password",
    envvar="PRESSURE_SERVE_PASSWORD",
    metavar="TEXT",
    help="The password that clients must give. Other users of this machine can see a command line, "
    "so better set PRESSURE_SERVE_PASSWORD. 'random' makes a password and shows it.",
)
def serve(directory: Path | None, port: int, bind: str, password: str | None) -> None:
    """Run the Valkey server that comes with pressure_mp[embedded], until Ctrl-C or SIGTERM.

    With --directory the server writes each change to an append-only file. If the machine stops, at
    most the changes of the last second are lost.
    """
    if password == "random":
        password = secrets.token_urlsafe(24)
        click.echo(f"The password is {password}", err=True)
    if bind not in ("127.0.0.1", "::1", "localhost") and not password:
        raise click.UsageError(
            "every program that can connect could run code in your consumers: give a --password"
        )
    login = ":PASSWORD@" if password else ""
    host = f"[{bind}]" if ":" in bind else bind
    told = f"The server runs. To use it: export PRESSURE_URL=redis://{login}{host}:{port}/0\n"
    become_server(directory, port, bind, password, told)
