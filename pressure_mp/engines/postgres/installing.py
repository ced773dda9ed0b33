"""To install the schema in a database, to bring it up to date, to remove it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from ...exceptions import BrokerError
from ..finishing import finish
from . import schema
from .address import PostgresAddress
from .errors import Forbidden
from .packing import load
from .statements import versions
from .wire import BlockingWire, Statement, Wire

#: Seconds to connect.
_TIMEOUT = 10.0
#: Of who installs: one at a time.
_LOCK = 0x70726573737572
#: A row if there is the schema: how its tables are kept, NULL if it has none of ours.
_THERE = Statement(
    b"",
    b"SELECT max(c.relpersistence::text) FROM pg_namespace n LEFT JOIN pg_class c "
    b"ON c.relnamespace = n.oid AND c.relname = 'queues' WHERE n.nspname = $1 GROUP BY n.oid",
    (0,),
)


#: A row if there is anything in the schema.
_OCCUPIED = Statement(
    b"occupied",
    b"SELECT '' FROM pg_namespace n WHERE n.nspname = $1 AND "
    b"(EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid) "
    b"OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = n.oid) "
    b"OR EXISTS (SELECT FROM pg_type t WHERE t.typnamespace = n.oid))",
    (0,),
)


async def install_over(wire: Wire, name: str, unlogged: bool = False) -> None:
    """Install it, or bring the one that is there up to date. Raises BrokerError if that is to be
    ``unlogged``, and is not; or if it is newer than this package."""
    async with _alone(wire):
        found = await wire.execute(_THERE, (name.encode(),), None)
        if not found or found[0][0] is None:
            await _check_empty(wire, name)
            await wire.execute_text(schema.install_sql(name, unlogged, is_there=bool(found)))
        elif unlogged and found[0][0] != b"u":
            raise BrokerError(
                f"the schema {name} is there, and its tables are logged: uninstall it first, with "
                "all queues, or install another one"
            )
        else:
            await _upgrade(wire, name, found[0][0] == b"u")


async def _check_empty(wire: Wire, name: str) -> None:
    """Raise BrokerError if others have something in the schema, which has no queues."""
    if await wire.execute(_OCCUPIED, (name.encode(),), None):
        raise BrokerError(
            f"the schema {name} contains other things than queues: use a schema only for queues; "
            "nothing was done"
        )


async def _upgrade_over(wire: Wire, name: str) -> None:
    async with _alone(wire):
        found = await wire.execute(_THERE, (name.encode(),), None)
        await _upgrade(wire, name, bool(found) and found[0][0] == b"u")


async def _upgrade(wire: Wire, name: str, unlogged: bool) -> None:
    found, _ = load((await wire.execute(versions(name), (), None))[0][0])
    if found > schema.VERSION:
        raise BrokerError(
            f"the schema {name} is of version {found}, and this package has {schema.VERSION}: "
            "upgrade it by the package that installed it; nothing was done"
        )
    await wire.execute_text(schema.upgrade_sql(name, found, unlogged))


@asynccontextmanager
async def _alone(wire: Wire) -> AsyncIterator[None]:
    """A transaction, while nobody else installs or upgrades. After an error the connection is
    closed, and nothing was done."""
    try:
        await wire.execute_text(f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK});")
        yield
        await wire.execute_text("COMMIT")
    except BaseException as error:
        wire.close()
        if isinstance(error, Forbidden):
            raise BrokerError(
                f"{error.refused}; a schema is installed by a role that may create schemas in the "
                "database, and upgraded and removed by its owner"
            ) from None
        raise


async def _uninstall_over(wire: Wire, name: str) -> None:
    async with _alone(wire):
        found = await wire.execute(_THERE, (name.encode(),), None)
        if found and found[0][0] is None:
            await _check_empty(wire, name)
        await wire.execute_text(schema.uninstall_sql(name))


def _run(address: PostgresAddress, run: Callable[[Wire, str], Coroutine[Any, Any, None]]) -> None:
    wire = BlockingWire(address.url, address.schema, False)
    finish(wire.connect(address.conninfo(), _TIMEOUT))
    try:
        finish(run(wire, address.schema))
    finally:
        wire.close()


def install(address: PostgresAddress, unlogged: bool = False) -> None:
    """Make the schema, or bring the one that is there up to date. One that is ``unlogged`` is
    faster; after a crash of the server it is there without any queue."""
    _run(address, partial(install_over, unlogged=unlogged))


def upgrade(address: PostgresAddress) -> None:
    """Bring the schema up to date, while clients use it: all of it, or nothing. Where its tables
    change, clients wait for half a second at a time while a transaction that uses them is open.

    Raises NotInstalled if there is no schema; BrokerError if it is newer than this package, or if
    such a transaction is open for 40 seconds.
    """
    _run(address, _upgrade_over)


def uninstall(address: PostgresAddress) -> None:
    """Remove it, with all queues."""
    _run(address, _uninstall_over)
