"""Transactions of connections that a program has to the file of a queue."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

from ...exceptions import ArgumentError
from ..contract.session import Transaction
from ..kv.store import Fate, How, Txn
from ..own_connections import Wanted, unwrap
from .own_transactions import OwnTransaction
from .store import SqliteStore, SqliteTxn

R = TypeVar("R")

_WANTED = Wanted((sqlite3.Connection,), "sqlite3")
_MARK = b"transaction"


class SqliteTransaction:
    """The transaction of a connection of the caller's, which has the lock to write."""

    def __init__(self, store: SqliteStore, given: object, name: str) -> None:
        """Begins a transaction, if none is under way. Raises ArgumentTypeError or ArgumentError for
        a connection that cannot be used; ``name`` is the queue's."""
        self.traits, self._admit = store.traits, store.admit
        self._connection: sqlite3.Connection = unwrap(given, _WANTED)
        _check(self._connection, store.path, name)
        self.transaction: Transaction = self._begin(store)

    def _begin(self, store: SqliteStore) -> OwnTransaction:
        connection = self._connection
        with _plain_cursor(connection) as cursor:
            # The lock comes before the first read: a reader whose view is old cannot get it.
            if connection.in_transaction:
                cursor.execute("DELETE FROM pressure_mp WHERE k IS NULL")
            else:
                with store.turn():
                    cursor.execute("BEGIN IMMEDIATE")
            txn, known = SqliteTxn(cursor), store.own_transactions
            found = known.find(connection, txn.get(_MARK))
            if found is None:
                found = known.add(connection)
                txn.set(_MARK, found.mark)
                # Only the queues move the log into the file, each under the lock of all.
                cursor.execute("PRAGMA wal_autocheckpoint=0").fetchall()
            store.move_log()
            return found

    def write(self, body: Callable[[Txn], R], fate: Fate | None, how: How) -> R:
        """Call ``body``. If it raises, what it did is undone."""
        if how.adds:
            self._admit()
        with _plain_cursor(self._connection) as cursor:
            cursor.execute("SAVEPOINT pressure_mp")
            try:
                reply = body(SqliteTxn(cursor))
            except BaseException:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK TO pressure_mp")
                    cursor.execute("RELEASE pressure_mp")
                raise
            cursor.execute("RELEASE pressure_mp")
            return reply


def check_no_transaction(given: object, name: str) -> None:
    """Raise ArgumentError if a transaction of the connection is under way: it may have the lock of
    the file, which the thread that opens the queue of that name would wait for."""
    if unwrap(given, _WANTED).in_transaction:
        raise ArgumentError(
            f"queue {name!r} is not open, and cannot be opened while a transaction of this "
            "connection is under way: open() it before the transaction begins"
        )


@contextmanager
def _plain_cursor(connection: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
    """Have a cursor whose rows are tuples, whatever the connection's are."""
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        yield cursor


def _check(connection: sqlite3.Connection, path: str, name: str) -> None:
    refused = f"a call on queue {name!r} cannot be part of a transaction of this connection: "
    try:
        if not connection.in_transaction and _is_automatic(connection):
            raise ArgumentError(
                refused + "it is in autocommit mode, and no transaction has begun; execute BEGIN "
                "IMMEDIATE first (Django: use transaction.atomic())"
            )
        with _plain_cursor(connection) as cursor:
            own = os.fsdecode(cursor.execute("PRAGMA database_list").fetchall()[0][2])
    except sqlite3.ProgrammingError as error:
        raise ArgumentError(f"{refused}{error}") from error
    if not own or not os.path.samefile(own, path):
        raise ArgumentError(
            f"{refused}it is to {own or 'a database in memory'}, and the queue is in {path}"
        )


def _is_automatic(connection: sqlite3.Connection) -> bool:
    # Python 3.12 has the attribute; -1 is the behaviour of earlier versions.
    mode = getattr(connection, "autocommit", -1)
    return connection.isolation_level is None if mode == -1 else bool(mode)
