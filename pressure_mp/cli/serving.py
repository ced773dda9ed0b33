"""The commands that run until Ctrl-C: metrics with --listen, dashboard, serve, worker."""

from __future__ import annotations

import gc
import ipaddress
import os
import secrets
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ..exceptions import ArgumentError, EvictionWarning
from .broker import Broker, with_broker
from .output import Decorator, seconds


def _port(least: int, default: int, help: str) -> Decorator:
    return click.option("--port", type=click.IntRange(least, 65535), default=default, help=help)


def _bind(help: str) -> Decorator:
    return click.option("--bind", default="127.0.0.1", metavar="ADDRESS", help=help)


@contextmanager
def _needing(extras: str, *libraries: str) -> Iterator[None]:
    """Say what to install where one of these libraries is missing in this block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in libraries:
            raise
        command = click.get_current_context().info_name
        raise click.ClickException(
            f"{command} needs {error.name}: pip install 'pressure_mp[{extras}]'"
        ) from None


@contextmanager
def _listening(bind: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot listen at {bind}, port {port}: {error}") from error


def _secret(said: str | None, what: str) -> str | None:
    """Make a secret, and show it, if the command line asks for a random one."""
    if said == "random":
        said = secrets.token_urlsafe(24)
        click.echo(f"The {what} is {said}", err=True)
    return said


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@with_broker
@click.option(
    "--per-queue",
    metavar="PATTERN",
    help="Also write the metrics of each queue whose name matches, such as 'jobs-*'.",
)
@click.option(
    "--listen",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Serve the metrics over HTTP at this port, until Ctrl-C, instead of writing them once.",
)
@_bind("The address to listen at, with --listen.")
def metrics(per_queue: str | None, listen: int | None, bind: str, broker: Broker) -> None:
    """Write the metrics of all queues in the text format of Prometheus.

    They are sums over all queues of a discipline (fifo, lifo, priority, fair, tasks). Prometheus
    reads the output through node_exporter's textfile collector, or from --listen.
    """
    with _needing("metrics", "prometheus_client"):
        from prometheus_client import CollectorRegistry, generate_latest, start_http_server

        from ..telemetry.prometheus import QueueCollector
    registry = CollectorRegistry()
    registry.register(QueueCollector(**broker.options, per_queue=per_queue))
    if listen is None:
        gc.disable()  # it would visit all queues again and again, and none becomes garbage
        click.echo(generate_latest(registry), nl=False)
        return
    with _listening(bind, listen):
        start_http_server(listen, bind, registry)
    click.echo(f"Metrics at http://{bind}:{listen}/metrics", err=True)
    threading.Event().wait()


@with_broker
@_port(0, 8700, "The port to listen at; 0 for any free one.")
@_bind("The address to listen at; an address that other machines can reach needs a token.")
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
@seconds(
    "--interval", "The time between two readings of the queues, while a page is open.", 0.2, 2.0
)
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
    with _needing("cli,dashboard", "starlette", "uvicorn"):
        from ..dashboard.app import make_app
        from ..dashboard.settings import Settings

        # isort: split
        import uvicorn
    if token is None and "PRESSURE_DASHBOARD_TOKEN" in os.environ:  # click takes it for unset
        raise click.UsageError("PRESSURE_DASHBOARD_TOKEN is empty")
    token = _secret(token, "token")
    if not _is_loopback(bind) and not token:
        raise click.UsageError(
            "every browser that can connect could see every queue: give a --token, or bind to "
            "127.0.0.1"
        )
    try:
        settings = Settings(token, allow_actions, show_content, hosts, interval)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from error
    warnings.simplefilter("ignore", EvictionWarning)
    config = uvicorn.Config(
        make_app(**broker.options, settings=settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with _listening(bind, port), socket.create_server((bind, port), family=family) as listening:
        at = f"http://{_in_url(bind)}:{listening.getsockname()[1]}/"
        click.echo(f"Dashboard at {at}", err=True)
        uvicorn.Server(config).run(sockets=[listening])


def _is_loopback(address: str) -> bool:
    """Tell whether only this machine can connect to that address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


@click.command()
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the data is kept; created if it does not exist. Without it, the data is gone when "
    "the server ends.",
)
@_port(1, 6379, "The port to listen at.")
@_bind(
    "The address to listen at; 0.0.0.0 for all. An address that other machines can reach needs a "
    "password."
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
    from ..engines.embedded.serving import become_server

    password = _secret(password, "password")
    if bind not in ("127.0.0.1", "::1", "localhost") and not password:
        raise click.UsageError(
            "every program that can connect could run code in your consumers: give a --password"
        )
    login = ":PASSWORD@" if password else ""
    url = f"redis://{login}{_in_url(bind)}:{port}/0"
    told = f"The server runs. To use it: export PRESSURE_URL={url}\n"
    become_server(directory, port, bind, password, told)


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
