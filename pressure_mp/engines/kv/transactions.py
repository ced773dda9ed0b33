"""Sessions in a transaction of the caller's, at a store to which programs have connections of their
own."""

from __future__ import annotations

from typing import Any, Protocol

from ..contract.items import Put
from ..contract.replies import Later
from ..contract.session import Transaction
from ..contract.task_records import StoredTask
from ..contract.tasks import AckTask, GetTask, PutTasks
from .engine import KvBinding
from .session import StoredSession
from .space import NamedQueue
from .store import Transactions


class CallersTransaction(Transactions, Protocol):
    """A transaction of the caller's. Other programs see the changes of a request when the
    transaction commits."""

    transaction: Transaction


class TransactionSession(StoredSession):
    """For a thread.

    A session whose turn would come is woken at once, and not by the commit, which this process is
    not told of: it then waits for the transaction's end, since that has the lock to write.
    """

    def __init__(self, binding: KvBinding, transaction: CallersTransaction) -> None:
        assert isinstance(binding.queue, NamedQueue)
        queue = binding.queue.within(transaction)
        super().__init__(queue, binding.bells, binding.discipline, binding.options)
        self._is_durable = False  # the caller decides how durable its transaction is
        self.transaction: Transaction | None = transaction.transaction

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

    def __init__(self, binding: KvBinding, transaction: CallersTransaction) -> None:
        self._session = TransactionSession(binding, transaction)
        self.transaction = self._session.transaction

    async def call(self, request: Any, end: float | None = None) -> Any:
        return self._session.call(request, end)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        return self._session.wait(later, timeout)

    async def end(self) -> None:
        self._session.end()
