"""The broker that a command works on."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from ..administration import broker
from ..administration.broker import Named
from ..engines.contract.address import Address
from ..exceptions import AddressError

__all__ = ["Broker", "Named", "broker_options", "with_broker", "with_queue"]

Command = TypeVar("Command", bound=Callable[..., Any])


def broker_options(command: Command) -> Command:
    """Add the options that say where the broker is, which every command has."""
    for option in (
        click.option(
            "--prefix",
            default=None,
            help="What the queues' key names begin with; else PRESSURE_PREFIX, else __pressure__.",
            metavar="TEXT",
        ),
        click.option(
            "--url",
            default=None,
            metavar="URL",
            help="Where the broker is; else PRESSURE_URL; else REDIS_SERVER, REDIS_PORT and "
            "REDIS_DB; else 127.0.0.1:6379, database 0.",
        ),
    ):
        command = option(command)
    return command


def with_broker(command: Callable[..., None]) -> Callable[..., None]:
    """Add the same options, and give the command the ``broker`` there."""

    @functools.wraps(command)
    def at_broker(url: str | None, prefix: str | None, **given: Any) -> None:
        command(broker=Broker(url, prefix), **given)

    return broker_options(at_broker)


def with_queue(command: Callable[..., None]) -> Callable[..., None]:
    """Add the same options, and give the command the ``queue`` that its argument ``name`` names."""

    @functools.wraps(command)
    def on_queue(broker: Broker, name: str, **given: Any) -> None:
        command(queue=broker.find(name), **given)

    return with_broker(on_queue)


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
