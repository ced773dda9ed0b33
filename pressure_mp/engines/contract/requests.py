"""All requests, by the levels of the contract: an engine does each request of its levels."""

from __future__ import annotations

from typing import get_args

from .brokers import (
    AppendSample,
    ExamineServer,
    FindDamaged,
    Identify,
    ListQueues,
    MayGet,
    ReadSamples,
    RenewAll,
)
from .contents import ReadChunks, StoreChunks, SweepContents
from .fair import GetKeys, GetQueued, GetSnapshot
from .forwarding import Forward
from .hosts import Forget, GetRemembered, Leave, Remember
from .items import (
    Acknowledge,
    DropRejected,
    EndPrefetch,
    GetRejected,
    PeekItems,
    PeekPlaced,
    Prefetch,
    Purge,
    Put,
    Renew,
    Requeue,
    RequeueRejected,
    Retire,
    SetAside,
    Take,
    TakeBack,
)
from .levels import Level
from .queues import (
    Close,
    CountDone,
    Delete,
    Dismiss,
    Enlist,
    Exists,
    GetDiscipline,
    GetLength,
    GetStats,
    GetUsers,
    Inspect,
    IsClosed,
    Join,
    Open,
    SetBound,
    Unlock,
)
from .task_administration import (
    ChangeTask,
    GetTaskCounts,
    GetWorkers,
    KickTasks,
    ListTasks,
    TruncateTasks,
)
from .task_results import CloseInbox, OpenInbox, TakeNotices, WatchTasks
from .tasks import (
    AckTask,
    AckTasks,
    AreTasksClosed,
    AwaitTask,
    BuryTask,
    CloseTasks,
    ConfigureTasks,
    CountReady,
    DeleteTasks,
    GetTask,
    LimitTasks,
    OpenTasks,
    PauseTasks,
    PutTasks,
    ReleaseTask,
    RenewTaker,
    RequeueTasks,
    TakeTasks,
    TouchTask,
)

#: Requests to every kind of queue.
QueueRequest = (
    Exists | GetDiscipline | Enlist | GetUsers | Dismiss | StoreChunks | ReadChunks | SweepContents
)

#: Requests to hosts.
HostRequest = Remember | GetRemembered | Forget | Leave

#: Of the level ITEMS.
ItemsRequest = (
    QueueRequest
    | HostRequest
    | Open
    | Put
    | Take
    | TakeBack
    | SetAside
    | GetLength
    | GetStats
    | IsClosed
    | SetBound
    | Close
    | Delete
    | MayGet
)

#: Of the level DELIVERIES.
DeliveriesRequest = Acknowledge | Requeue | Renew | RenewAll | Retire | CountDone | Join | Forward

#: Of the level AHEAD.
AheadRequest = Prefetch | EndPrefetch

#: Of the level ADMINISTRATION.
AdministrationRequest = (
    ListQueues
    | Identify
    | ExamineServer
    | FindDamaged
    | Inspect
    | Unlock
    | Purge
    | PeekItems
    | PeekPlaced
    | GetRejected
    | RequeueRejected
    | DropRejected
    | GetSnapshot
    | GetKeys
    | GetQueued
)

#: Requests of the level TASKS; the requests to every kind of queue are not among them.
TasksRequest = (
    OpenTasks
    | PutTasks
    | TakeTasks
    | AckTask
    | ReleaseTask
    | BuryTask
    | TouchTask
    | AckTasks
    | ChangeTask
    | KickTasks
    | ListTasks
    | GetTask
    | AwaitTask
    | CountReady
    | GetTaskCounts
    | GetWorkers
    | TruncateTasks
    | RenewTaker
    | RequeueTasks
    | ConfigureTasks
    | PauseTasks
    | LimitTasks
    | CloseTasks
    | AreTasksClosed
    | DeleteTasks
    | OpenInbox
    | WatchTasks
    | TakeNotices
    | CloseInbox
)

#: Of the level SAMPLES.
SamplesRequest = AppendSample | ReadSamples

Request = (
    ItemsRequest
    | DeliveriesRequest
    | AheadRequest
    | AdministrationRequest
    | TasksRequest
    | SamplesRequest
)

#: The requests of each level.
LEVELS: dict[Level, tuple[type, ...]] = {
    Level.ITEMS: get_args(ItemsRequest),
    Level.DELIVERIES: get_args(DeliveriesRequest),
    Level.AHEAD: get_args(AheadRequest),
    Level.ADMINISTRATION: get_args(AdministrationRequest),
    Level.TASKS: get_args(TasksRequest),
    Level.SAMPLES: get_args(SamplesRequest),
}
