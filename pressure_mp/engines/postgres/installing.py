"""Install the schema in a database, upgrade it, remove it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from ...exceptions import BrokerError
from ..blocking_coroutines import finish
from . import schema
from .address import PostgresAddress
from .errors import Forbidden, NotInstalled
from .packing import load, texts
from .statements import Statement, versions
from .wire import BlockingWire, Wire

#: Seconds to connect.
_TIMEOUT = 10.0
#: The advisory lock of an installation: one at a time.
_LOCK = 0x70726573737572
#: Returns a row if the schema exists: how its tables are kept, NULL if it is not a schema of this
#: package.
_THERE = Statement(
    b"there",
    b"SELECT (SELECT c.relpersistence::text FROM pg_class c WHERE c.relnamespace = n.oid "
    b"AND c.relname = 'queues' AND 2 = (SELECT count(*) FROM pg_proc p "
    b"WHERE p.pronamespace = n.oid AND p.pronargs = 0 AND p.proname IN ('version', 'serves'))) "
    b"FROM pg_namespace n WHERE n.nspname = $1",
    (0,),
)
#: Lists some objects of any kind that are in the schema and have none of these names: all that
#: depend on the schema, and are not a part of another object.
_OTHERS = Statement(
    b"others",
    b"""SELECT concat_ws(' ', o.type, o.identity)
        FROM pg_namespace n JOIN pg_depend d
            ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid AND d.deptype = 'n',
            pg_identify_object(d.classid, d.objid, 0) o
        WHERE n.nspname = $1 AND CASE d.classid
            WHEN 'pg_class'::regclass THEN (SELECT 'TABLE ' || c.relname
                FROM pg_class c WHERE c.oid = d.objid AND c.relkind = 'r')
            WHEN 'pg_proc'::regclass THEN (SELECT 'FUNCTION ' || p.proname
                FROM pg_proc p WHERE p.oid = d.objid)
            WHEN 'pg_type'::regclass THEN (SELECT 'TYPE ' || t.typname
                FROM pg_type t WHERE t.oid = d.objid)
            END = ANY ($2) IS NOT TRUE
            AND NOT EXISTS (SELECT FROM pg_depend i
                WHERE i.classid = d.classid AND i.objid = d.objid AND i.deptype = 'i')
        ORDER BY 1 LIMIT 3""",
    (0, 1),
)


async def install_over(wire: Wire, name: str, unlogged: bool = False) -> None:
    """Install the schema, or upgrade the existing one. Raises BrokerError if that is to be
    ``unlogged``, and is not; or if it is newer than this package."""
    async with _alone(wire):
        found = await wire.execute(_THERE, (name.encode(),), None)
        if not found or found[0][0] is None:
            await _check_no_others(wire, name)
            await wire.execute_text(schema.install_sql(name, unlogged, is_there=bool(found)))
        elif unlogged and found[0][0] != b"u":
            raise BrokerError(
                f"the schema {name} is there, and its tables are logged: uninstall it first, with "
                "all queues, or install another one"
            )
        else:
            await _upgrade(wire, name)


async def _check_no_others(wire: Wire, name: str, own: Iterable[str] = ()) -> None:
    """Raise BrokerError if the schema has objects with other names than those in ``own``."""
    others = await wire.execute(_OTHERS, (name.encode(), texts(own)), None)
    if others:
        found = ", ".join((row[0] or b"").decode() for row in others)
        raise BrokerError(
            f"the schema {name} contains other things than queues ({found}): use a schema only for "
            "queues; nothing was done"
        )


async def _check_version(wire: Wire, name: str) -> None:
    """Raise NotInstalled if this is no schema of this package, and BrokerError if it is newer."""
    found = await wire.execute(_THERE, (name.encode(),), None)
    if not found or found[0][0] is None:
        raise NotInstalled(
            f"the database at {wire.shown} has no schema {name} in which queues are installed; "
            "nothing was done"
        )
    version, _ = load((await wire.execute(versions(name), (), None))[0][0])
    if version > schema.VERSION:
        raise BrokerError(
            f"the schema {name} is of version {version}, and this package has {schema.VERSION}: "
            "use the package that installed it; nothing was done"
        )


async def _upgrade_over(wire: Wire, name: str) -> None:
    async with _alone(wire):
        await _upgrade(wire, name)


async def _upgrade(wire: Wire, name: str) -> None:
    await _check_version(wire, name)
    await wire.execute_text(schema.upgrade_sql(name))


@asynccontextmanager
async def _alone(wire: Wire) -> AsyncIterator[None]:
    """Run a transaction while no other process installs or upgrades. After an error the connection
    is closed, and nothing was done."""
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
        await _check_version(wire, name)
        await _check_no_others(wire, name, schema.own_names())
        await wire.execute_text(schema.uninstall_sql(name))


def _run(address: PostgresAddress, run: Callable[[Wire, str], Coroutine[Any, Any, None]]) -> None:
    wire = BlockingWire(address.url, address.schema, False)
    finish(wire.connect(address.conninfo(), _TIMEOUT))
    try:
        finish(run(wire, address.schema))
    finally:
        wire.close()


def install(address: PostgresAddress, unlogged: bool = False) -> None:
    """Install the schema, or upgrade the existing one. An ``unlogged`` schema is faster, and has no
    queue after a crash of the server."""
    _run(address, partial(install_over, unlogged=unlogged))


def upgrade(address: PostgresAddress) -> None:
    """Upgrade the schema, while clients use it: all of it, or nothing.

    Raises NotInstalled if the schema does not exist; BrokerError if it is newer than this package.
    """
    _run(address, _upgrade_over)


def uninstall(address: PostgresAddress) -> None:
    """Remove the schema, with all queues.

    Raises NotInstalled if the schema does not exist, or has no queues; BrokerError if it is newer
    than this package, contains other objects, or if objects elsewhere depend on it. Nothing is done
    then.
    """
    _run(address, _uninstall_over)
