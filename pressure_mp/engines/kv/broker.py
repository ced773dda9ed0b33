"""The broker in a store: its queues, its samples, and the notes of its hosts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..contract.brokers import (
    AppendSample,
    AppendSampleReply,
    ExamineServer,
    ExamineServerReply,
    Finding,
    Identify,
    IdentifyReply,
    ListQueues,
    ListQueuesReply,
    QueuePage,
    ReadSamples,
    ReadSamplesReply,
)
from ..contract.default_replies import default_reply
from ..contract.hosts import (
    Forget,
    ForgetReply,
    GetRemembered,
    GetRememberedReply,
    Leave,
    LeaveReply,
    Remember,
    RememberReply,
)
from ..contract.implementations import Implementations
from ..contract.replies import Outcome
from ..contract.requests import Request
from ..requests import samples
from .items import StoredItems
from .packing import pack
from .records import JSON, RAW
from .space import Space
from .store import How
from .tasks import StoredTasks
from .unit import Table, Unit

for_brokers: Implementations[StoredBroker, [Unit]] = Implementations()
for_hosts: Implementations[StoredHost, [Unit]] = Implementations()


class StoredBroker:
    """All queues of one address, and their samples."""

    def __init__(self, space: Space, find: Callable[[], list[Finding]]) -> None:
        self._space, self._find = space, find

    def call(self, request: Request, caller: Any, how: How) -> Any:
        do = for_brokers.get(type(request))
        if do is None:
            return default_reply(request)
        return self._space.write(lambda unit: do(self, request, unit), None, how)

    @for_brokers.does(ListQueues)
    def _list(self, request: ListQueues, unit: Unit) -> ListQueuesReply:
        space = self._space
        items = [StoredItems(space, name).summary(unit) for name in space.names(unit, "i")]
        tasks = [StoredTasks(space, name).summary(unit) for name in space.names(unit, "t")]
        return QueuePage([one for one in items + tasks if one is not None], "")

    @for_brokers.does(ExamineServer)
    def _examine(self, request: ExamineServer, unit: Unit) -> ExamineServerReply:
        return self._find()

    @for_brokers.does(Identify)
    def _identify(self, request: Identify, unit: Unit) -> IdentifyReply:
        names: Table[str, str] = Table(unit, self._space.prefix + pack(("identity",)), JSON)
        return names.setdefault("id", os.urandom(8).hex())

    @for_brokers.does(AppendSample)
    def _append(self, request: AppendSample, unit: Unit) -> AppendSampleReply:
        kept, end, now = *self._samples(unit), self._space.clock()
        if now >= end.get("end", 0):
            kept.clear()
        is_added = samples.append(kept, request, now)
        if is_added:
            end["end"] = now + request.ttl
        return is_added

    @for_brokers.does(ReadSamples)
    def _read(self, request: ReadSamples, unit: Unit) -> ReadSamplesReply:
        kept, end = self._samples(unit)
        return samples.read(kept, request) if self._space.clock() < end.get("end", 0) else []

    def _samples(self, unit: Unit) -> tuple[Table[int, bytes], Table[str, int]]:
        prefix = self._space.prefix + pack(("samples",))
        return Table(unit, prefix + b"s", RAW), Table(unit, prefix + b"e", JSON)

    def leave(self, caller: Any) -> None:
        """Do nothing: no caller waits here."""


class StoredHost:
    """The anonymous queues that one host uses."""

    def __init__(self, space: Space, name: str) -> None:
        self._space = space
        self._prefix = space.prefix + pack(("host", name))

    def call(self, request: Request, caller: Any, how: How) -> Any:
        do = for_hosts[type(request)]
        return self._space.write(lambda unit: do(self, request, unit), None, how)

    def _noted(self, unit: Unit) -> Table[tuple[str, str], int]:
        return Table(unit, self._prefix, JSON, False)

    @for_hosts.does(Remember)
    def _remember(self, request: Remember, unit: Unit) -> RememberReply:
        self._noted(unit)[request.queue] = 1
        return Outcome.DONE

    @for_hosts.does(GetRemembered)
    def _get_remembered(self, request: GetRemembered, unit: Unit) -> GetRememberedReply:
        return list(self._noted(unit))

    @for_hosts.does(Forget)
    def _forget(self, request: Forget, unit: Unit) -> ForgetReply:
        noted = self._noted(unit)
        for queue in request.queues:
            noted.pop(queue, None)
        return Outcome.DONE

    @for_hosts.does(Leave)
    def _leave(self, request: Leave, unit: Unit) -> LeaveReply:
        return Outcome.DONE  # nothing is kept for one process

    def leave(self, caller: Any) -> None:
        """Do nothing: no caller waits here."""
