"""Check the settings of a role's sessions that this package cannot set itself."""

from __future__ import annotations

from ...exceptions import BrokerError
from .statements import Statement
from .wire import Wire

_ASK = Statement(
    b"check_role",
    b"SELECT current_setting('transaction_isolation'), "
    b"CASE WHEN current_setting('default_transaction_read_only') = 'on' THEN (SELECT source "
    b"FROM pg_settings WHERE name = 'default_transaction_read_only') END",
    (),
)
#: The sources of a setting of the whole server. It may be changed back soon, and calls wait for
#: that.
_OF_THE_SERVER = (b"configuration file", b"command line")


async def check_role(wire: Wire, shown: str, timeout: float) -> bool:
    """Return whether the role, the database or the URL set the session to only read. Raises
    BrokerError if its transactions are not READ COMMITTED."""
    isolation, source = (await wire.execute(_ASK, (), timeout))[0]
    found = (isolation or b"").decode()
    if found not in ("read committed", "read uncommitted"):
        raise BrokerError(
            f"the database at {shown} makes the transactions of this session {found.upper()}, and "
            "queues need READ COMMITTED: set default_transaction_isolation so for the role. This "
            "package sets it itself, unless a pooler or the URL's options= prevent that"
        )
    return source is not None and source not in _OF_THE_SERVER


def only_reads(shown: str) -> BrokerError:
    """Make the error for a session that was set to only read."""
    return BrokerError(
        f"the database at {shown} lets this session only read: default_transaction_read_only is on "
        "for the role, for the database, or in the URL. Set it to off there, or use another role; "
        "nothing was done"
    )
