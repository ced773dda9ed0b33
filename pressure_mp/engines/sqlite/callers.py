"""Transactions of connections that a program has to the file of a queue, and sessions in them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from ...exceptions import ArgumentError
from ..contract.items import Put
from ..contract.replies import Later
from ..contract.task_records import StoredTask
from ..contract.tasks import AckTask, GetTask, PutTasks
from ..kv.engine import KvBinding
from ..kv.session import StoredSession
from ..kv.space import NamedQueue
from ..kv.store import Body, Fate, How
from ..own_connections import Wanted, unwrap
from .store import SqliteStore, SqliteTxn

R = TypeVar("R")

_WANTED = Wanted((sqlite3.Connection,), "sqlite3")
_MARK = b"transaction"


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


#: The last transaction of each connection, by the connection's id.
_known: dict[int, OwnTransaction] = {}


class SqliteTransaction:
    """The transaction of a connection of the caller's, which has the lock to write."""

    def __init__(self, store: SqliteStore, given: object, name: str) -> None:
        """Begins a transaction, if none is under way. Raises ArgumentTypeError or ArgumentError for
        a connection that cannot be used; ``name`` is the queue's."""
        self.traits, self._admit = store.traits, store.admit
        self._connection: sqlite3.Connection = unwrap(given, _WANTED)
        _check(self._connection, store.path, name)
        self.transaction = self._begin(store)

    def _begin(self, store: SqliteStore) -> OwnTransaction:
        connection = self._connection
        with _plain_cursor(connection) as cursor:
            # The lock comes before the first read: a reader whose view is old cannot get it.
            if connection.in_transaction:
                cursor.execute("DELETE FROM pressure_mp WHERE k IS NULL")
            else:
                with store.turn():
                    cursor.execute("BEGIN IMMEDIATE")
            txn, found = SqliteTxn(cursor), _known.get(id(connection))
            if found is None or found.mark != txn.get(_MARK):
                if found is not None:
                    found.end()
                for key in [key for key, one in list(_known.items()) if one.is_over]:
                    _known.pop(key, None)
                found = _known[id(connection)] = OwnTransaction(connection)
                txn.set(_MARK, found.mark)
                # Only the queues move the log into the file, each under the lock of all.
                cursor.execute("PRAGMA wal_autocheckpoint=0").fetchall()
            store.move_log()
            return found

    def write(self, body: Body[R], fate: Fate | None, how: How) -> R:
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


class TransactionSession(StoredSession):
    """For a thread.

    A session whose turn would come is woken at once, and not by the commit, which this process is
    not told of: it then waits for the transaction's end, since that has the lock to write.
    """

    def __init__(self, binding: KvBinding, connection: object) -> None:
        assert isinstance(binding.queue, NamedQueue)
        store = binding.queue.space.store
        assert isinstance(store, SqliteStore)
        joined = SqliteTransaction(store, connection, binding.queue.name)
        queue = binding.queue.within(joined)
        super().__init__(queue, binding.bells, binding.discipline, binding.options)
        self._is_durable = False  # the caller decides how durable its transaction is
        self.transaction = joined.transaction

    def call(self, request: Any, end: float | None = None) -> Any:
        if isinstance(request, (Put, PutTasks)):
            request = request._replace(waits=False)
        if not isinstance(request, AckTask):
            return super().call(request, end)
        before, after = super().call(GetTask(request.id)), super().call(request)
        return before if isinstance(after, StoredTask) else after  # it is taken until the commit

    def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"no call waits in a transaction: {later}")

    def end(self) -> None:
        """Do nothing: the session has no place in line."""


class AsyncTransactionSession:
    """For an asyncio task, in the thread of its loop."""

    found: list[Any] | None = None
    taken = None

    def __init__(self, binding: KvBinding, connection: object) -> None:
        self._session = TransactionSession(binding, connection)
        self.transaction = self._session.transaction

    async def call(self, request: Any, end: float | None = None) -> Any:
        return self._session.call(request, end)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        return self._session.wait(later, timeout)

    async def end(self) -> None:
        """Do nothing, as for a thread."""
