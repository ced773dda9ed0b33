"""The broker that a command works on."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

import click

from ..administration import broker
from ..administration.broker import Named
from ..engines.contract.address import Address
from ..exceptions import AddressError
from .completion import queue_name

__all__ = ["Broker", "Named", "at_url", "with_broker", "with_queue"]

#: The options of every command that has a broker.
_WHERE = (
    click.Option(
        ["--url"],
        metavar="URL",
        help="Where the broker is; else PRESSURE_URL; else REDIS_SERVER, REDIS_PORT and "
        "REDIS_DB; else 127.0.0.1:6379, database 0.",
    ),
    click.Option(
        ["--prefix"],
        metavar="TEXT",
        help="What the queues' key names begin with; else PRESSURE_PREFIX, else __pressure__.",
    ),
)


def at_url(function: Callable[..., None]) -> click.Command:
    """Make a command, with the options that say where the broker is behind its own."""
    command = click.command(function.__name__.rstrip("_"))(function)
    command.params.extend(_WHERE)
    return command


def with_broker(function: Callable[..., None]) -> click.Command:
    """Make a command that is given the ``broker`` there."""

    @functools.wraps(function)
    def at_broker(url: str | None, prefix: str | None, **given: Any) -> None:
        function(broker=Broker(url, prefix), **given)

    return at_url(at_broker)


def with_queue(function: Callable[..., None]) -> click.Command:
    """Make a command that is given the ``queue`` there that its first argument names."""

    @functools.wraps(function)
    def on_queue(broker: Broker, name: str, **given: Any) -> None:
        function(queue=broker.find(name), **given)

    return with_broker(queue_name()(on_queue))


class Broker(broker.Broker):
    """A broker that other processes can reach."""

    def __init__(
        self, url: str | None, prefix: str | None, environ: Mapping[str, str] = os.environ
    ) -> None:
        try:
            super().__init__(url, prefix, environ)
        except AddressError as error:
            raise click.UsageError(str(error)) from error

    def check(self, address: Address) -> None:
        """Refuse a broker in memory, and a private server that this process would start."""
        if address.capabilities.private:
            raise click.UsageError(
                f"{address.url} is private to one program, so this command would find nothing "
                "there: give the URL of a server, or embedded:///directory"
            )
