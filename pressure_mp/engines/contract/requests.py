"""All requests, by the levels of the contract: an engine does each request of its levels."""

from __future__ import annotations

from typing import get_args

from . import (
    brokers,
    contents,
    fair,
    hosts,
    items,
    queues,
    task_administration,
    task_results,
    tasks,
)
from .forwarding import Forward
from .levels import Level

#: Requests to every kind of queue.
QueueRequest = (
    queues.Exists
    | queues.GetDiscipline
    | queues.Enlist
    | queues.GetUsers
    | queues.Dismiss
    | queues.IsClosed
    | contents.StoreChunks
    | contents.ReadChunks
    | contents.SweepContents
)

#: Requests to hosts.
HostRequest = hosts.Remember | hosts.GetRemembered | hosts.Forget | hosts.Leave

#: Of the level ITEMS.
ItemsRequest = (
    QueueRequest
    | HostRequest
    | queues.Open
    | items.Put
    | items.Take
    | items.TakeBack
    | items.SetAside
    | queues.GetLength
    | queues.GetStats
    | queues.SetBound
    | queues.Close
    | queues.Delete
    | brokers.MayGet
)

#: Of the level DELIVERIES.
DeliveriesRequest = (
    items.Acknowledge
    | items.Requeue
    | items.Renew
    | brokers.RenewAll
    | items.Retire
    | queues.CountDone
    | queues.Join
    | Forward
)

#: Of the level AHEAD.
AheadRequest = items.Prefetch | items.EndPrefetch

#: Of the level ADMINISTRATION.
AdministrationRequest = (
    brokers.ListQueues
    | brokers.Identify
    | brokers.ExamineServer
    | brokers.FindDamaged
    | queues.Inspect
    | queues.Unlock
    | items.Purge
    | items.PeekItems
    | items.GetRejected
    | items.RequeueRejected
    | items.DropRejected
    | fair.GetSnapshot
    | fair.GetKeys
    | fair.GetQueued
)

#: Requests of the level TASKS; the requests to every kind of queue are not among them.
TasksRequest = (
    tasks.OpenTasks
    | tasks.PutTasks
    | tasks.TakeTasks
    | tasks.AckTask
    | tasks.ReleaseTask
    | tasks.BuryTask
    | tasks.TouchTask
    | tasks.AckTasks
    | task_administration.ChangeTask
    | task_administration.KickTasks
    | task_administration.ListTasks
    | tasks.GetTask
    | tasks.AwaitTask
    | tasks.CountReady
    | task_administration.GetTaskCounts
    | task_administration.GetWorkers
    | task_administration.TruncateTasks
    | tasks.RenewTaker
    | tasks.RequeueTasks
    | tasks.ConfigureTasks
    | tasks.PauseTasks
    | tasks.LimitTasks
    | tasks.CloseTasks
    | tasks.DeleteTasks
    | task_results.OpenInbox
    | task_results.WatchTasks
    | task_results.TakeNotices
    | task_results.CloseInbox
)

#: Of the level SAMPLES.
SamplesRequest = brokers.AppendSample | brokers.ReadSamples

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
