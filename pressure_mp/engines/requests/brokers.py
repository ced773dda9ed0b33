"""Requests to a broker: its queues, its samples, and the notes of a host."""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping, MutableSet
from dataclasses import dataclass
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
    Sample,
)
from ..contract.hosts import (
    Forget,
    ForgetReply,
    GetRemembered,
    GetRememberedReply,
    Leave,
    LeaveReply,
    QueueKey,
    Remember,
    RememberReply,
)
from ..contract.implementations import Implementations
from ..contract.replies import Outcome


@dataclass
class Broker:
    """The state of a broker, as the processes of one host use it."""

    clock: Callable[[], int]
    page: Callable[[ListQueues], QueuePage]
    find: Callable[[], list[Finding]]
    #: Forgets a queue that no process uses any more, by its name and discipline.
    drop: Callable[[str, str], None]
    #: The anonymous queues that the host uses.
    noted: MutableSet[QueueKey]
    #: By the milliseconds at which they were taken.
    samples: MutableMapping[int, bytes]
    #: The ``identity`` of the broker, and the ``end`` of its samples in milliseconds.
    about: MutableMapping[str, Any]

    @property
    def has_samples(self) -> bool:
        return bool(self.clock() < self.about.get("end", 0))


for_brokers: Implementations[Broker, []] = Implementations()


@for_brokers.does(ListQueues)
def _list(broker: Broker, request: ListQueues) -> ListQueuesReply:
    return broker.page(request)


@for_brokers.does(ExamineServer)
def _examine(broker: Broker, request: ExamineServer) -> ExamineServerReply:
    return broker.find()


@for_brokers.does(Identify)
def _identify(broker: Broker, request: Identify) -> IdentifyReply:
    identity: str = broker.about.setdefault("identity", os.urandom(8).hex())
    return identity


@for_brokers.does(AppendSample)
def _append(broker: Broker, request: AppendSample) -> AppendSampleReply:
    """Append a sample, unless the last one is not old enough; remove the oldest."""
    samples, now = broker.samples, broker.clock()
    if not broker.has_samples:
        samples.clear()
    times = list(samples)
    if times and 0 <= now - times[-1] < request.every:
        return False
    time = max(now, times[-1] + 1) if times else now
    samples[time] = request.data
    for old in [*times, time][: -request.keep]:
        del samples[old]
    broker.about["end"] = now + request.ttl
    return True


@for_brokers.does(ReadSamples)
def _read(broker: Broker, request: ReadSamples) -> ReadSamplesReply:
    if not broker.has_samples:
        return []
    return [Sample(time, data) for time, data in broker.samples.items() if time > request.after]


@for_brokers.does(Remember)
def _remember(broker: Broker, request: Remember) -> RememberReply:
    broker.noted.add(request.queue)
    return Outcome.DONE


@for_brokers.does(GetRemembered)
def _get_remembered(broker: Broker, request: GetRemembered) -> GetRememberedReply:
    return list(broker.noted)


@for_brokers.does(Forget)
def _forget(broker: Broker, request: Forget) -> ForgetReply:
    for queue in request.queues:
        broker.noted.discard(queue)
        broker.drop(*queue)
    return Outcome.DONE


@for_brokers.does(Leave)
def _leave(broker: Broker, request: Leave) -> LeaveReply:
    return Outcome.DONE  # nothing is kept for one process
