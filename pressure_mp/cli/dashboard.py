"""The command dashboard: pages about every queue, in a browser."""

from __future__ import annotations

import os
import secrets
import warnings

import click

from ..exceptions import ArgumentError, EvictionWarning
from .broker import Broker, with_broker


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8700,
    help="The port to listen at; 0 for any free one.",
)
@click.option(
    "--bind",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="The address to listen at; an address that other machines can reach needs a token.",
)
@click.option(
    "--token",
    envvar="PRESSURE_DASHBOARD_TOKEN",
    metavar="TEXT",
    help="The secret that a browser must give first. Other users of this machine can see a "
    "command line, so better set PRESSURE_DASHBOARD_TOKEN. 'random' makes a token and shows it.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A host name that browsers may use for the dashboard, such as a proxy's; may be given "
    "several times.",
)
@click.option("--allow-actions", is_flag=True, help="Let the pages change queues.")
@click.option(
    "--show-content", is_flag=True, help="Show the content of items; nothing is unpickled."
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.2),
    default=2.0,
    metavar="SECONDS",
    help="The time between two readings of the queues, while a page is open.",
)
@with_broker
def dashboard(
    port: int,
    bind: str,
    token: str | None,
    hosts: tuple[str, ...],
    allow_actions: bool,
    show_content: bool,
    interval: float,
    broker: Broker,
) -> None:
    """Serve pages about every queue to browsers, until Ctrl-C.

    They show the queued items, which clients wait for which, tasks and their errors, workers, the
    slowest stage of a pipeline, and what loses data.
    """
    try:
        from ..dashboard.app import make_app
        from ..dashboard.serving import is_loopback, serve
        from ..dashboard.settings import Settings
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise click.ClickException(
            f"dashboard needs {error.name}: pip install 'pressure_mp[cli,dashboard]'"
        ) from None
    if token is None and "PRESSURE_DASHBOARD_TOKEN" in os.environ:  # click takes it for unset
        raise click.UsageError("PRESSURE_DASHBOARD_TOKEN is empty")
    if token == "random":
        token = secrets.token_urlsafe(24)
        click.echo(f"The token is {token}", err=True)
    if not is_loopback(bind) and not token:
        raise click.UsageError(
            "every browser that can connect could see every queue: give a --token, or bind to "
            "127.0.0.1"
        )
    try:
        settings = Settings(token, allow_actions, show_content, hosts, interval)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from error
    warnings.simplefilter("ignore", EvictionWarning)
    app = make_app(**broker.options, settings=settings)
    try:
        serve(app, bind, port, lambda where: click.echo(f"Dashboard at {where}", err=True))
    except OSError as error:
        raise click.ClickException(f"cannot listen at {bind}, port {port}: {error}") from error
