"""To install the schema in a database, to bring it up to date, to remove it."""

from __future__ import annotations

from ...exceptions import BrokerError
from . import schema
from .address import PostgresAddress
from .wire import BlockingWire, Statement, Wire, finish

#: Seconds to connect.
_TIMEOUT = 10.0
#: Of who installs: one at a time.
_LOCK = 0x70726573737572
#: A row if there is the schema: how its tables are kept.
_THERE = Statement(
    b"",
    b"SELECT max(c.relpersistence::text) FROM pg_namespace n LEFT JOIN pg_class c "
    b"ON c.relnamespace = n.oid AND c.relname = 'queues' WHERE n.nspname = $1 GROUP BY n.oid",
    (0,),
)


async def install_over(wire: Wire, name: str, unlogged: bool = False) -> None:
    """Install it, or bring the one that is there up to date. Raises BrokerError if that is to be
    ``unlogged``, and is not."""
    try:
        await wire.execute_text(f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK});")
        found = await wire.execute(_THERE, (name.encode(),), None)
        if not found:
            await wire.execute_text(schema.install_sql(name, unlogged))
        elif unlogged and found[0][0] != b"u":
            raise BrokerError(
                f"the schema {name} is there, and its tables are logged: uninstall it first, with "
                "all queues, or install another one"
            )
        else:
            await wire.execute_text(schema.upgrade_sql(name))
        await wire.execute_text("COMMIT")
    except BaseException:
        wire.close()
        raise


def _run(address: PostgresAddress, text: str | None, unlogged: bool = False) -> None:
    wire = BlockingWire(address.url, address.schema, False)
    finish(wire.connect(address.conninfo(), _TIMEOUT))
    try:
        if text is None:
            finish(install_over(wire, address.schema, unlogged))
        else:
            finish(wire.execute_text(f"BEGIN; {text} COMMIT;"))
    finally:
        wire.close()


def install(address: PostgresAddress, unlogged: bool = False) -> None:
    """Make the schema, or bring the one that is there up to date. One that is ``unlogged`` is
    faster; after a crash of the server it is there without any queue."""
    _run(address, None, unlogged)


def upgrade(address: PostgresAddress) -> None:
    """Bring the schema up to date, while clients use it. Raises NotInstalled if there is none."""
    _run(address, schema.upgrade_sql(address.schema))


def uninstall(address: PostgresAddress) -> None:
    """Remove it, with all queues."""
    _run(address, schema.uninstall_sql(address.schema))
