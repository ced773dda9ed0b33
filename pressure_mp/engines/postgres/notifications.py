"""Connect for notifications: over a connection that keeps its session at the server."""

from __future__ import annotations

from ...exceptions import BrokerUnavailable, PressureError
from .address import PostgresAddress
from .statements import IDENTIFY, Statement
from .wire import Wire

#: Seconds to connect, and for each reply.
_TIMEOUT = 5.0
#: How often to check whether the session is kept: a check fails to see a change while other clients
#: use the sessions.
_CHECKS = 5
_ASK_SESSION = Statement(b"", b"SELECT pg_backend_pid()::text", ())


def wire_to_listen(kind: type[Wire], address: PostgresAddress) -> Wire:
    """Make the wire that :func:`connect_to_listen` connects."""
    place = address._replace(hosts=address.listen or address.hosts, listen="")
    return kind(place.url, address.schema, False)


async def connect_to_listen(wire: Wire, address: PostgresAddress) -> None:
    """Connect. Raises BrokerUnavailable, also if no notification would come: where a pooler gives
    each transaction another session, or ``listen`` in the URL leads to another database."""
    conninfo = address.conninfo(address.listen or None)
    await wire.connect(conninfo, _TIMEOUT)
    session = await _session(wire)
    if session != wire.pgconn.backend_pid and not await _is_kept(session, wire, address):
        wire.close()
        raise BrokerUnavailable(
            f"the database at {wire.shown} gives each transaction another session, and sends no "
            "notifications: a pooler does that"
        )
    if address.listen and not await _is_same(wire, address):
        wire.close()
        raise BrokerUnavailable(
            f"listen={address.listen} in the URL leads to another server or database than "
            f"{address.url}, which sends no notifications of these queues"
        )


async def listen(wire: Wire, number: int) -> None:
    """Listen for notifications to that number. As long as the connection lives, the server holds
    the number's lock."""
    if wire.pgconn is None:  # it broke in a check before, which tells no errors
        raise BrokerUnavailable(f"the connection to {wire.shown} broke")
    for text in (f"SELECT pg_advisory_lock({number})", f"LISTEN pressure_mp_{number}"):
        await wire.execute(Statement(b"", text.encode(), ()), (), _TIMEOUT)


async def _session(wire: Wire) -> int:
    return int((await wire.execute(_ASK_SESSION, (), _TIMEOUT))[0][0] or b"")


async def _is_same(wire: Wire, address: PostgresAddress) -> bool:
    """Tell whether the connection leads to the database of the queues, as far as is known."""
    other = type(wire)(address.url, address.schema, False)
    try:
        await other.connect(address.conninfo(), _TIMEOUT)
        theirs, own = [await one.execute(IDENTIFY, (), _TIMEOUT) for one in (wire, other)]
        return theirs == own
    except PressureError:
        return True
    finally:
        other.close()


async def _is_kept(session: int, wire: Wire, address: PostgresAddress) -> bool:
    """Tell whether a pooler keeps the session for this connection between transactions, as far as
    is known: if so, another connection gets another session for its transaction."""
    other = wire_to_listen(type(wire), address)
    try:
        await other.connect(address.conninfo(address.listen or None), _TIMEOUT)
        for _ in range(_CHECKS):
            await other.execute_text("BEGIN", _TIMEOUT)
            if await _session(other) == session or await _session(wire) != session:
                return False
            await other.execute_text("COMMIT", _TIMEOUT)
            # A pooler may give both the same sessions each time, unless the turns change.
            if await _session(wire) != session:
                return False
        return True
    except PressureError:
        return True
    finally:
        other.close()
