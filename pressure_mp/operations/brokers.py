"""The operations on a broker as a whole, and on a queue of which only the name is known."""

from __future__ import annotations

from collections.abc import Sequence

from ..effects import On, Operation
from ..engines.contract.brokers import (
    AppendSample,
    AppendSampleReply,
    DamagedPage,
    ExamineServer,
    ExamineServerReply,
    FindDamaged,
    FindDamagedReply,
    Finding,
    Identify,
    IdentifyReply,
    ListQueues,
    ListQueuesReply,
    MayGet,
    MayGetReply,
    QueuePage,
    QueueRenewal,
    ReadSamples,
    ReadSamplesReply,
    RenewAll,
    RenewAllReply,
    Sample,
)
from ..engines.contract.hosts import QueueKey
from ..engines.contract.items import Attendance
from ..engines.contract.queues import GetDiscipline, GetDisciplineReply
from ..engines.contract.replies import Outcome
from ..engines.contract.session import DEFAULTS, Engine, Options
from ..exceptions import IncompleteQueueError, QueueDoesNotExistError
from .control import FIFO


def list_page(after: str = "", limit: int = 1000) -> Operation[QueuePage]:
    """Return some of the queues at a broker; ``after`` is the page before's ``after``."""
    reply: ListQueuesReply = yield ListQueues(after, limit)
    return reply


def examine_server() -> Operation[list[Finding]]:
    """Return the settings of the server by which data are lost, or may be."""
    reply: ExamineServerReply = yield ExamineServer()
    return reply


def identify() -> Operation[str]:
    """Return an id of these queues, by whatever URL: queues of another broker or prefix have
    another."""
    reply: IdentifyReply = yield Identify()
    return reply


def append_sample(data: bytes, every: int, keep: int, ttl: int) -> Operation[bool]:
    """Keep a sample of all queues, if none was kept in the last ``every`` milliseconds; return
    whether it was. The newest ``keep`` stay, for ``ttl`` milliseconds after the last one."""
    reply: AppendSampleReply = yield AppendSample(data, every, keep, ttl)
    return reply


def read_samples(after: int = 0) -> Operation[list[Sample]]:
    """Return the samples behind that time, in milliseconds of the broker's clock, oldest first."""
    reply: ReadSamplesReply = yield ReadSamples(after)
    return reply


def renew_all(queues: Sequence[QueueRenewal]) -> Operation[list[Attendance | None]]:
    """Renew this process's leases in several queues at once. Returns the processes that use each
    queue; None for a queue that needs a renewal of its own."""
    reply: RenewAllReply = yield RenewAll(queues)
    return reply


def may_get(queues: Sequence[QueueKey]) -> Operation[list[bool | None]]:
    """Tell for each queue whether a get would return at once; None for a queue that needs a call
    of its own."""
    reply: MayGetReply = yield MayGet(queues)
    return reply


def find_damaged(after: str = "", limit: int = 1000) -> Operation[DamagedPage]:
    """Return some of the queues of which keys are missing, or belong to something else."""
    reply: FindDamagedReply = yield FindDamaged(after, limit)
    return reply


def find_discipline(engine: Engine, name: str, options: Options = DEFAULTS) -> Operation[str]:
    """Return the discipline of the queue of that name. Raises QueueDoesNotExistError."""
    rival = engine.rival(name, FIFO, options)
    for binding in (engine.bind(name, FIFO, options), rival):
        if binding is not None:
            found: str | None = yield On(binding, _discipline())
            if found == FIFO and binding is rival:
                raise IncompleteQueueError(
                    f"queue {name!r} has lost the key that says its discipline: the server or "
                    "another program removed it; `pressure-mp doctor` says what to do"
                )
            if found is not None:
                return found
    raise QueueDoesNotExistError(f"queue {name!r} does not exist at {engine.address.url}")


def _discipline() -> Operation[str | None]:
    reply: GetDisciplineReply = yield GetDiscipline()
    return None if reply is Outcome.MISSING else reply
