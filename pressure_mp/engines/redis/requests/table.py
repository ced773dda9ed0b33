"""Which function does a request."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ....exhaustive import assert_never
from ...contract import contents as c
from ...contract import fair as f
from ...contract import items as i
from ...contract import queues as q
from ...contract import task_administration as a
from ...contract import task_results as r
from ...contract import tasks as t
from ...contract.requests import Request
from ..caller import Caller
from ..task_waiting import await_task, take_notices
from . import contents, fair, items, queues, results, tasks

#: Given the caller, the request and the end of the call; returns one of the request's replies.
Implementation = Callable[[Caller, Any, "float | None"], Coroutine[Any, Any, Any]]

#: Those that were looked up, by the request's type.
known: dict[type, Implementation] = {}


def implementation(request: Request) -> Implementation:
    """What does such a request."""
    found = known.get(type(request))
    if found is None:
        found = known[type(request)] = _choose(request)
    return found


def _choose(request: Request) -> Implementation:
    found: Implementation
    match request:
        case i.Put():
            found = items.put
        case i.ReleaseSpace():
            found = items.release_space
        case i.Take():
            found = items.take
        case i.TakeBack():
            found = items.take_back
        case i.Prefetch():
            found = items.prefetch
        case i.HandOut():
            found = items.hand_out
        case i.Reserve():
            found = items.reserve
        case i.EndReservation():
            found = items.end_reservation
        case i.Acknowledge():
            found = items.acknowledge
        case i.SetAside():
            found = items.set_aside
        case i.GetRejected():
            found = items.get_rejected
        case i.RequeueRejected():
            found = items.requeue_rejected
        case i.DropRejected():
            found = items.drop_rejected
        case i.PeekItems():
            found = items.peek
        case i.PeekPlaced():
            found = items.peek_placed
        case i.Purge():
            found = queues.purge
        case i.Requeue():
            found = items.requeue
        case i.Renew():
            found = items.renew
        case i.Retire():
            found = items.retire
        case q.Open():
            found = queues.open_
        case q.Exists():
            found = queues.exists
        case q.GetDiscipline():
            found = queues.get_discipline
        case q.Enlist():
            found = queues.enlist
        case q.GetUsers():
            found = queues.get_users
        case q.Dismiss():
            found = queues.dismiss
        case q.CountDone():
            found = queues.count_done
        case q.Join():
            found = queues.join
        case q.GetLength():
            found = queues.get_length
        case q.GetStats():
            found = queues.get_stats
        case q.IsClosed():
            found = queues.is_closed
        case q.SetBound():
            found = queues.set_bound
        case q.Close():
            found = queues.close
        case q.Delete():
            found = queues.delete
        case q.Unlock():
            found = queues.unlock
        case q.Inspect():
            found = queues.inspect
        case c.StoreChunks():
            found = contents.store_chunks
        case c.ReadChunks():
            found = contents.read_chunks
        case c.SweepContents():
            found = contents.sweep_contents
        case f.GetSnapshot():
            found = fair.get_snapshot
        case f.GetKeys():
            found = fair.get_keys
        case f.GetQueued():
            found = fair.get_queued
        case t.OpenTasks():
            found = tasks.open_
        case t.PutTasks():
            found = tasks.put
        case t.PutAwaited():
            found = tasks.put_awaited
        case t.TakeTasks():
            found = tasks.take
        case t.AckTask():
            found = tasks.ack
        case t.ReleaseTask():
            found = tasks.release
        case t.BuryTask():
            found = tasks.bury
        case t.TouchTask():
            found = tasks.touch
        case t.AckTasks():
            found = tasks.ack_many
        case a.ChangeTask():
            found = tasks.change
        case a.KickTasks():
            found = tasks.kick
        case a.ListTasks():
            found = tasks.list_tasks
        case t.GetTask():
            found = tasks.get_task
        case t.AwaitTask():
            found = await_task
        case t.CountReady():
            found = tasks.count_ready
        case a.GetTaskCounts():
            found = tasks.count
        case a.TruncateTasks():
            found = tasks.truncate
        case t.RenewTaker():
            found = tasks.renew
        case t.RequeueTasks():
            found = tasks.requeue
        case t.CloseTasks():
            found = tasks.close
        case t.AreTasksClosed():
            found = tasks.closed
        case t.DeleteTasks():
            found = tasks.delete
        case r.OpenInbox():
            found = results.open_inbox
        case r.WatchTasks():
            found = results.watch
        case r.TakeNotices():
            found = take_notices
        case r.CloseInbox():
            found = results.close_inbox
        case _:
            assert_never(request)
    return found
