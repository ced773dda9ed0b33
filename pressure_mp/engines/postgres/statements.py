"""The statements of this package: each is a call of one of the schema's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .schema import quoted

#: The identity of the database of a connection: of its cluster, and of the database there.
IDENTITY = (
    "SELECT system_identifier::text, oid::text FROM pg_control_system(), pg_database "
    "WHERE datname = current_database()"
)
_TEXTS = 0
_BINARY = 1


class Statement(NamedTuple):
    """A text with parameters, and the forms of its parameters: 0 for a text, 1 for a binary one."""

    name: bytes
    text: bytes
    formats: Sequence[int]


#: Asks for it. It has another name than the statement that also tells the schema.
IDENTIFY = Statement(b"identify_database", IDENTITY.encode(), ())


class Statements:
    """The statements of one schema."""

    def __init__(self, name: str) -> None:
        schema = quoted(name)
        columns = "status, info, items, woken, is_early::text"
        self.call = _make(schema, "call", columns, 16, 15, 16)
        self.forward = _make(schema, "forward", columns, 23, 7, 22, 23)
        self.flush = _make(schema, "flush", "flush::text", 3)
        self.put_one = _make(schema, "put_one", "put_one", 6, 6)
        self.put_next = _make(schema, "put_next", "put_next", 7, 1, 2, 3, 7)
        self.take_one = _make(schema, "take_one", "take_one", 6)
        self.take_next = _make(schema, "take_next", "take_next", 6, 1, 2, 3)
        self.look_at = _make(schema, "look_at", "status, info, items", 7, 7)
        self.leave = _make(schema, "leave", "NULL::text", 4)
        self.call_host = _make(schema, "call_host", "name, discipline", 6, 4, 5, 6)
        #: The call over a caller's own connection.
        self.stage = (
            f"SELECT status, info::text, items, xid FROM {schema}.stage(%s::text, %s::text, "
            "%s::text, %s::text, %s::text, %s::bigint, %s::text, %s::jsonb, %b::bytea[], "
            "%b::bytea[])"
        )
        self.list_queues = _make(schema, "list_queues", "queue", 3)
        self.append_sample = _make(schema, "append_sample", "append_sample::text", 5, 2)
        self.read_samples = _make(schema, "read_samples", "at::text, data", 2)
        #: Reads the catalogs, so no function is installed for it.
        self.identify = Statement(
            b"identify",
            b"SELECT concat_ws('-', system_identifier, d.oid, '%s'::regnamespace::oid) "
            b"FROM pg_control_system(), pg_database d WHERE d.datname = current_database()"
            % schema.encode(),
            (),
        )
        self.server_settings = _make(schema, "server_settings", "server_settings", 0)


def versions(schema: str) -> Statement:
    """Make the statement that reads the installed version, and the oldest version that it
    serves."""
    own = quoted(schema)
    text = f"SELECT jsonb_build_array({own}.version(), {own}.serves())"
    return Statement(b"versions", text.encode(), ())


def _make(schema: str, function: str, columns: str, number: int, *binary: int) -> Statement:
    """Make a statement. ``binary`` are the numbers of the parameters in the binary form, from 1
    on."""
    places = ", ".join(f"${place}" for place in range(1, number + 1))
    called = f"{schema}.{function}({places})"
    # A function that returns one value is called without a scan of its result.
    text = f"SELECT {called}" if columns == function else f"SELECT {columns} FROM {called}"
    formats = [_BINARY if place in binary else _TEXTS for place in range(1, number + 1)]
    return Statement(function.encode(), text.encode(), formats)
