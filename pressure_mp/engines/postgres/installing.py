"""To install the schema in a database, to bring it up to date, to remove it."""

from __future__ import annotations

from . import schema
from .address import PostgresAddress
from .wire import BlockingWire, Statement, Wire, finish

#: Seconds to connect.
_TIMEOUT = 10.0
#: Of who installs: one at a time.
_LOCK = 0x70726573737572


async def install_over(wire: Wire, name: str) -> None:
    """Install it, unless somebody just did."""
    try:
        await wire.execute_text(f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK});")
        there = Statement(
            b"", b"SELECT to_jsonb(EXISTS (SELECT FROM pg_namespace WHERE nspname = $1))", (0,)
        )
        found = await wire.execute(there, (name.encode(),), None)
        if found[0][0] == b"\x01true":
            await wire.execute_text(schema.upgrade_sql(name))
        else:
            await wire.execute_text(schema.install_sql(name))
        await wire.execute_text("COMMIT")
    except BaseException:
        wire.close()
        raise


def _run(address: PostgresAddress, text: str | None) -> None:
    wire = BlockingWire(address.url, address.schema, False)
    finish(wire.connect(address.conninfo(), _TIMEOUT))
    try:
        if text is None:
            finish(install_over(wire, address.schema))
        else:
            finish(wire.execute_text(f"BEGIN; {text} COMMIT;"))
    finally:
        wire.close()


def install(address: PostgresAddress) -> None:
    """Make the schema, or bring the one that is there up to date."""
    _run(address, None)


def upgrade(address: PostgresAddress) -> None:
    """Bring the schema up to date, while clients use it. Raises NotInstalled if there is none."""
    _run(address, schema.upgrade_sql(address.schema))


def uninstall(address: PostgresAddress) -> None:
    """Remove it, with all queues."""
    _run(address, schema.uninstall_sql(address.schema))
