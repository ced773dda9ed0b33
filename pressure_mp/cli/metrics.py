"""The command metrics: write metrics of all queues, or serve them."""

from __future__ import annotations

import gc
import threading

import click

from .broker import Broker, with_broker


@click.command()
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
@click.option(
    "--bind",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="The address to listen at, with --listen.",
)
@with_broker
def metrics(per_queue: str | None, listen: int | None, bind: str, broker: Broker) -> None:
    """Write the metrics of all queues in the text format of Prometheus.

    They are sums over all queues of a discipline (fifo, lifo, priority, fair, tasks). Prometheus
    reads the output through node_exporter's textfile collector, or from --listen.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest, start_http_server

        from ..telemetry.prometheus import QueueCollector
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise click.ClickException(
            "metrics needs prometheus_client: pip install 'pressure_mp[metrics]'"
        ) from None
    registry = CollectorRegistry()
    registry.register(QueueCollector(**broker.options, per_queue=per_queue))
    if listen is None:
        gc.disable()  # it would visit all queues again and again, and none becomes garbage
        click.echo(generate_latest(registry), nl=False)
        return
    try:
        start_http_server(listen, bind, registry)
    except OSError as error:
        raise click.ClickException(f"cannot listen at {bind}, port {listen}: {error}") from error
    click.echo(f"Metrics at http://{bind}:{listen}/metrics", err=True)
    threading.Event().wait()
