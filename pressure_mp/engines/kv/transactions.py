"""Sessions in a transaction of the caller's, at a store that programs have connections of their own
to."""

from __future__ import annotations

from typing import Any, Protocol

from ..contract.items import Put
from ..contract.replies import Later
from ..contract.session import Transaction
from ..contract.task_records import StoredTask
from ..contract.tasks import AckTask, GetTask
from .engine import KvBinding
from .items import StoredItems
from .session import BaseStoredSession
from .store import Store
from .tasks import StoredTasks


class CallersStore(Store, Protocol):
    """The store as a transaction of the caller's sees it. What a request does there is done, for
    others, when the transaction commits."""

    transaction: Transaction


class TransactionSession(BaseStoredSession):
    """For a thread.

    A session whose turn would come is woken at once, and not by the commit, which this process is
    not told of: it then waits for the transaction's end, since that has the lock to write.
    """

    def __init__(self, binding: KvBinding, store: CallersStore) -> None:
        assert isinstance(binding.queue, (StoredItems, StoredTasks))
        queue = binding.queue.within(store)
        super().__init__(queue, binding.bells, binding.discipline, binding.options)
        self._is_durable = False  # the caller decides how durable its transaction is
        self.transaction: Transaction | None = store.transaction

    def call(self, request: Any, end: float | None = None) -> Any:
        if isinstance(request, Put):
            request = request._replace(waits=False)
        if not isinstance(request, AckTask):
            return self._call(request, True)
        before, after = self._call(GetTask(request.id), True), self._call(request, True)
        return before if isinstance(after, StoredTask) else after  # it is taken until the commit

    def wait(self, later: Later, timeout: float | None) -> bool:
        raise AssertionError(f"no call waits in a transaction: {later}")

    def end(self) -> None:
        """Do nothing: the session has no place in line."""


class AsyncTransactionSession:
    """For an asyncio task, in the thread of its loop."""

    found: list[Any] | None = None
    taken = None

    def __init__(self, binding: KvBinding, store: CallersStore) -> None:
        self._session = TransactionSession(binding, store)
        self.transaction = self._session.transaction

    async def call(self, request: Any, end: float | None = None) -> Any:
        return self._session.call(request, end)

    async def wait(self, later: Later, timeout: float | None) -> bool:
        return self._session.wait(later, timeout)

    async def end(self) -> None:
        self._session.end()
