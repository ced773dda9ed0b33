"""The command ``pressure-mp postgres``: the schema that has the queues of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..engines import registry
from ..engines.postgres import schema as texts
from ..engines.postgres.address import (
    DEFAULT_SCHEMA,
    SCHEMA_LETTERS,
    PostgresAddress,
    is_schema,
)

Command = TypeVar("Command", bound=Callable[..., Any])


def _check(ctx: click.Context, parameter: click.Parameter, schema: str | None) -> str | None:
    if schema is not None and not is_schema(schema):
        raise click.BadParameter(f"it is not of {SCHEMA_LETTERS}")
    return schema


def _schema(default: str | None, text: str) -> Callable[[Command], Command]:
    return click.option("--schema", default=default, metavar="NAME", help=text, callback=_check)


def _of_text(command: Command) -> Command:
    """The option that says how the schema is called in what is printed."""
    return _schema(DEFAULT_SCHEMA, f"The schema, if it is not {DEFAULT_SCHEMA}.")(command)


def _in_database(command: Command) -> Command:
    """The options that say which schema of which database."""
    url = click.option(
        "--url",
        default=None,
        metavar="URL",
        help="postgresql://user@host/database, of the schema's owner; else PRESSURE_URL.",
    )
    return url(_schema(None, f"The schema; else that of the URL, else {DEFAULT_SCHEMA}.")(command))


def _address(url: str | None, schema: str | None) -> PostgresAddress:
    address = registry.resolve(url)
    if not isinstance(address, PostgresAddress):
        raise click.UsageError(
            f"{address.url} is no database: --url, or PRESSURE_URL, is to be "
            "postgresql://user@host/database"
        )
    return address if schema is None else address._replace(schema=schema)


@click.group(short_help="Install queues in a PostgreSQL database.")
def postgres() -> None:
    """Make and remove the schema that has the queues of a PostgreSQL database."""


unlogged = click.option(
    "--unlogged", is_flag=True, help="Faster; after a crash of the server all queues are gone."
)


@postgres.command()
@unlogged
@_in_database
def install(url: str | None, schema: str | None, unlogged: bool) -> None:
    """Make the schema, or bring the one that is there up to date."""
    address = _address(url, schema)
    from ..engines.postgres import installing  # which needs psycopg, as the address says

    installing.install(address, unlogged)
    click.echo(f"The schema {address.schema} is installed.")


@postgres.command()
@_in_database
def upgrade(url: str | None, schema: str | None) -> None:
    """Bring the schema up to date, while clients use it."""
    address = _address(url, schema)
    from ..engines.postgres import installing

    installing.upgrade(address)
    click.echo(f"The schema {address.schema} is up to date.")


@postgres.command()
@_in_database
@click.confirmation_option(prompt="Remove the schema, with all queues?", help="Do not ask.")
def uninstall(url: str | None, schema: str | None) -> None:
    """Remove the schema, with all queues."""
    address = _address(url, schema)
    from ..engines.postgres import installing

    installing.uninstall(address)
    click.echo(f"The schema {address.schema} is removed.")


@postgres.command()
@unlogged
@_of_text
def sql(schema: str, unlogged: bool) -> None:
    """Print what install executes, for an administrator of the database."""
    click.echo(texts.install_sql(schema, unlogged))


@postgres.command()
@click.argument("role")
@_of_text
def grant(role: str, schema: str) -> None:
    """Print what lets a ROLE use the queues."""
    click.echo(texts.grant_sql(role, schema))
