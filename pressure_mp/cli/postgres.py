"""The command ``pressure-mp postgres``: the schema that has the queues of a PostgreSQL database."""

from __future__ import annotations

import click

from ..engines import registry
from ..engines.postgres import schema as texts
from ..engines.postgres.address import DEFAULT_SCHEMA, SCHEMA_LETTERS, PostgresAddress, is_schema
from .output import Command, Decorator
from .repair import confirm, yes


def _check(ctx: click.Context, parameter: click.Parameter, schema: str | None) -> str | None:
    if schema is not None and not is_schema(schema):
        raise click.BadParameter(f"its name has {SCHEMA_LETTERS}")
    return schema


def _schema(default: str | None, text: str) -> Decorator:
    return click.option("--schema", default=default, metavar="NAME", help=text, callback=_check)


#: The option for the schema's name in the printed SQL.
_of_text = _schema(DEFAULT_SCHEMA, "The name of the schema.")


def _in_database(command: Command) -> Command:
    """Add the options for the database and its schema."""
    url = click.option(
        "--url",
        default=None,
        metavar="URL",
        help="postgresql://user@host/database, where user owns the schema; else PRESSURE_URL.",
    )
    return url(_schema(None, f"Its name; else that in the URL, else {DEFAULT_SCHEMA}.")(command))


def _address(url: str | None, schema: str | None) -> PostgresAddress:
    address = registry.resolve(url)
    if not isinstance(address, PostgresAddress):
        raise click.UsageError(
            f"{address.url} is not a PostgreSQL database: --url or PRESSURE_URL must be "
            "postgresql://user@host/database"
        )
    return address if schema is None else address._replace(schema=schema)


@click.group(short_help="Install queues in a PostgreSQL database.")
def postgres() -> None:
    """Install, upgrade and remove the schema that the queues in a PostgreSQL database need."""


unlogged = click.option(
    "--unlogged", is_flag=True, help="Faster, but after a crash of the server all queues are gone."
)


@postgres.command()
@unlogged
@_in_database
def install(url: str | None, schema: str | None, unlogged: bool) -> None:
    """Create the schema, or upgrade an existing one."""
    address = _address(url, schema)
    from ..engines.postgres import installing  # needs psycopg, as the address says

    installing.install(address, unlogged)
    click.echo(f"The schema {address.schema} is installed.")


@postgres.command()
@_in_database
def upgrade(url: str | None, schema: str | None) -> None:
    """Upgrade the schema to this version of the package. Clients may go on using it."""
    address = _address(url, schema)
    from ..engines.postgres import installing

    installing.upgrade(address)
    click.echo(f"The schema {address.schema} is up to date.")


@postgres.command()
@_in_database
@yes
def uninstall(url: str | None, schema: str | None, yes: bool) -> None:
    """Remove the schema, with all queues and their items and tasks."""
    address = _address(url, schema)
    confirm(f"Remove the schema {address.schema} and all queues in it?", yes)
    from ..engines.postgres import installing

    installing.uninstall(address)
    click.echo(f"The schema {address.schema} is removed.")


@postgres.command()
@unlogged
@_of_text
def sql(schema: str, unlogged: bool) -> None:
    """Print the SQL that install executes, for an administrator of the database."""
    click.echo(texts.install_sql(schema, unlogged))


@postgres.command()
@click.argument("role")
@_of_text
def grant(role: str, schema: str) -> None:
    """Print the SQL that lets the database role ROLE use the queues."""
    click.echo(texts.grant_sql(role, schema))
