"""Connections of callers, and their transactions."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from ...exceptions import ArgumentError
from ..own_connections import Wanted
from .errors import refusal

#: The identity of the database of a connection: of its cluster, and of the database there.
IDENTITY = (
    "SELECT system_identifier::text, oid::text FROM pg_control_system(), pg_database "
    "WHERE datname = current_database()"
)

AnyConnection = Connection[Any] | AsyncConnection[Any]
WANTED = Wanted((Connection, AsyncConnection), "psycopg 3")


def as_read(row: Sequence[Any]) -> tuple[Any, ...]:
    """Decode the texts of a row: psycopg has them as bytes where the encoding is not known
    (SQL_ASCII). Contents of queues are in arrays, and stay bytes."""
    return tuple(one.decode() if isinstance(one, bytes) else one for one in row)


def check(connection: AnyConnection, name: str) -> None:
    """Raise ArgumentError unless a transaction is under way, or begins with the next statement;
    ``name`` is the queue's."""
    refused = f"a call on queue {name!r} cannot be part of a transaction of this connection: "
    if connection.closed:
        raise ArgumentError(refused + "it is closed")
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise ArgumentError(refused + "its transaction has failed; roll it back")
    if status == TransactionStatus.IDLE and connection.autocommit:
        raise ArgumentError(
            refused + "it is in autocommit mode, and no transaction has begun; use connection= "
            "within `with connection.transaction():`, or without autocommit (Django: within "
            "transaction.atomic())"
        )


def as_of_queues(error: Any, shown: str, schema: str) -> BaseException:
    """Return the error to raise when a statement of this package failed in a caller's transaction:
    an error of this package if the schema, or a right to it, is missing; otherwise psycopg's own,
    as for any other statement of the caller's."""
    state = error.sqlstate or ""
    if state in ("3F000", "42883", "42501"):
        return refusal(state, error.diag.message_primary or str(error), shown, schema)
    found: BaseException = error
    return found


class CallersTransaction:
    """A transaction of a caller's, in which something was staged."""

    def __init__(self, connection: AnyConnection, xid: str) -> None:
        self._connection = weakref.ref(connection)
        self.xid = xid
        #: Whether its connection was seen in a later transaction.
        self.is_followed = False

    @property
    def is_over(self) -> bool:
        connection = self._connection()
        if self.is_followed or connection is None or connection.closed:
            return True
        return connection.info.transaction_status == TransactionStatus.IDLE


class Known:
    """The connections that are known to lead to a queue's database, and their transactions."""

    def __init__(self) -> None:
        self._connections: weakref.WeakSet[AnyConnection] = weakref.WeakSet()
        self._transactions: weakref.WeakKeyDictionary[AnyConnection, CallersTransaction] = (
            weakref.WeakKeyDictionary()
        )
        #: The identity of the queue's database, once it was asked.
        self.identity: tuple[str, ...] | None = None

    def __contains__(self, connection: AnyConnection) -> bool:
        return connection in self._connections

    def transaction(self, connection: AnyConnection, xid: str) -> CallersTransaction:
        """Return the transaction that is under way."""
        found = self._transactions.get(connection)
        if found is None or found.xid != xid:
            if found is not None:
                found.is_followed = True
            found = self._transactions[connection] = CallersTransaction(connection, xid)
        return found

    def add(self, connection: AnyConnection, identity: tuple[str, ...], shown: str) -> None:
        """Note a connection. Raises ArgumentError if it leads to another database."""
        if identity != self.identity:
            raise ArgumentError(
                f"the connection is to another database ({connection.info.dbname!r} at "
                f"{connection.info.host}:{connection.info.port}) than the queue, which is at "
                f"{shown}: they cannot have a transaction in common"
            )
        self._connections.add(connection)
