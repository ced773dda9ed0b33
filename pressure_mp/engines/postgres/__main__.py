"""``python -m pressure_mp.engines.postgres``: the schema, and the rights to it."""

from __future__ import annotations

import argparse
import os
import sys

from ...exceptions import PressureError
from ...urls import Url
from ..contract.address import DEFAULT_PREFIX
from . import schema
from .address import DEFAULT_SCHEMA, parse


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; the exit status."""
    asked = _parser().parse_args(arguments)
    if asked.command == "sql":
        print(schema.install_sql(asked.schema))
        return 0
    if asked.command == "grant":
        print(schema.grant_sql(asked.role, asked.schema))
        return 0
    from . import installing

    try:
        url = Url(asked.url or "")
        if url.scheme != "postgresql":
            raise url.error("is no URL of PostgreSQL: postgresql://user@host/database")
        address = parse(url, DEFAULT_PREFIX, {})
        act = {
            "install": installing.install,
            "upgrade": installing.upgrade,
            "uninstall": installing.uninstall,
        }[asked.command]
        act(address)
    except PressureError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pressure_mp.engines.postgres",
        description="The schema in which queues are kept, and the rights to it.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("install", "make the schema, or bring the one that is there up to date"),
        ("upgrade", "bring the schema up to date, while clients use it"),
        ("uninstall", "remove the schema, with all queues"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument(
            "url",
            nargs="?",
            default=os.environ.get("PRESSURE_URL"),
            help="postgresql://user@host/database?schema=… of the owner; else PRESSURE_URL",
        )
    for name, text in (
        ("sql", "print what install executes, for a database administrator"),
        ("grant", "print what lets a role use the queues"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        if name == "grant":
            command.add_argument("role")
        command.add_argument("--schema", default=DEFAULT_SCHEMA)
    return parser


if __name__ == "__main__":
    sys.exit(main())
