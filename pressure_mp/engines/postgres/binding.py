"""One queue in a database, as the sessions of its operations use it; and the connections of callers
to that database, with their transactions."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from ...exceptions import ArgumentError
from ..contract.items import Put, Take
from ..contract.session import Options
from ..contract.tasks import TakeTasks
from ..lines import Shortcut
from .address import PostgresAddress
from .listener import Listener
from .pool import Pool
from .quick import Quick
from .statements import Statements

AnyConnection = Connection[Any] | AsyncConnection[Any]


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


@dataclass(frozen=True)
class Binding:
    """A queue, and what its engine has for all queues of one schema."""

    name: str
    kind: str
    discipline: str
    options: Options
    address: PostgresAddress
    statements: Statements = field(compare=False)
    listener: Listener = field(compare=False)
    thread_pool: Pool = field(compare=False)
    #: The connections of callers that lead to the engine's database.
    known: Known = field(compare=False)
    quick: Quick = field(compare=False)
    #: Whether tasks of an event loop that wait for the same make their calls together.
    tries: Mapping[type, Shortcut] = field(
        default_factory=lambda: {kind: Shortcut() for kind in (Put, Take, TakeTasks)}, compare=False
    )

    @property
    def prefix(self) -> str:
        """The prefix of the engine's address."""
        return self.address.prefix
