"""All requests. One that is added here is one that each engine has to know: mypy names those that
do not."""

from __future__ import annotations

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
from .hosts import Forget, GetRemembered, Leave, Remember
from .items import (
    Acknowledge,
    DropRejected,
    EndReservation,
    GetRejected,
    HandOut,
    PeekItems,
    PeekPlaced,
    Prefetch,
    Purge,
    Put,
    Renew,
    Requeue,
    RequeueRejected,
    Reserve,
    Retire,
    SetAside,
    Take,
    TakeBack,
)
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
from .task_administration import ChangeTask, GetTaskCounts, KickTasks, ListTasks, TruncateTasks
from .task_results import CloseInbox, OpenInbox, TakeNotices, WatchTasks
from .tasks import (
    AckTask,
    AckTasks,
    AreTasksClosed,
    AwaitTask,
    BuryTask,
    CloseTasks,
    CountReady,
    DeleteTasks,
    GetTask,
    OpenTasks,
    PutAwaited,
    PutTasks,
    ReleaseTask,
    RenewTaker,
    RequeueTasks,
    TakeTasks,
    TouchTask,
)

#: Of every kind of queue.
QueueRequest = Exists | GetDiscipline | Enlist | GetUsers | Dismiss

#: Of queues of items, beside those.
ItemRequest = (
    Open
    | Put
    | Take
    | TakeBack
    | Prefetch
    | HandOut
    | Reserve
    | EndReservation
    | Acknowledge
    | SetAside
    | GetRejected
    | RequeueRejected
    | DropRejected
    | PeekItems
    | PeekPlaced
    | Purge
    | Requeue
    | Renew
    | Retire
    | CountDone
    | Join
    | GetLength
    | GetStats
    | IsClosed
    | SetBound
    | Close
    | Delete
    | Unlock
    | Inspect
    | StoreChunks
    | ReadChunks
    | SweepContents
    | GetSnapshot
    | GetKeys
    | GetQueued
)

#: Of queues of tasks, beside those of every kind.
TaskRequest = (
    OpenTasks
    | PutTasks
    | PutAwaited
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
    | TruncateTasks
    | RenewTaker
    | RequeueTasks
    | CloseTasks
    | AreTasksClosed
    | DeleteTasks
    | OpenInbox
    | WatchTasks
    | TakeNotices
    | CloseInbox
    | StoreChunks
    | ReadChunks
    | SweepContents
)

#: Of queues.
Request = QueueRequest | ItemRequest | TaskRequest

#: Of hosts.
HostRequest = Remember | GetRemembered | Forget | Leave

#: Of brokers.
BrokerRequest = (
    ListQueues
    | FindDamaged
    | ExamineServer
    | Identify
    | AppendSample
    | ReadSamples
    | RenewAll
    | MayGet
)
