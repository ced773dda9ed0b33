"""Transactions of the connections that a program has of its own, as far as this process knows
them."""

from __future__ import annotations

import os
import sqlite3


class OwnTransaction:
    """A transaction of a connection. This has no weak reference, so it is kept until the
    transaction is seen to be over."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection: sqlite3.Connection | None = connection
        #: It is in the file while the transaction is under way, and when it was committed.
        self.mark = os.urandom(8)

    def end(self) -> None:
        """Note that the transaction was rolled back, and the connection is in a later one."""
        self._connection = None

    @property
    def is_over(self) -> bool:
        if self._connection is not None and not _is_under_way(self._connection):
            self._connection = None
        return self._connection is None


def _is_under_way(connection: sqlite3.Connection) -> bool:
    try:
        return connection.in_transaction
    except sqlite3.ProgrammingError:  # it is closed
        return False


class OwnTransactions:
    """The last transaction of each connection."""

    def __init__(self) -> None:
        self._known: dict[int, OwnTransaction] = {}

    def find(self, connection: sqlite3.Connection, mark: bytes | None) -> OwnTransaction | None:
        """Return the transaction that is under way if the file has its mark."""
        found = self._known.get(id(connection))
        if found is None or found.mark == mark:
            return found
        found.end()
        return None

    def add(self, connection: sqlite3.Connection) -> OwnTransaction:
        """Note a transaction that has begun."""
        for key in [key for key, one in list(self._known.items()) if one.is_over]:
            self._known.pop(key, None)
        found = self._known[id(connection)] = OwnTransaction(connection)
        return found
