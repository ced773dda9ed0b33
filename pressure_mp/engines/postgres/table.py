"""Which way each request is made. mypy says here when the contract has one more."""

from __future__ import annotations

from ...exhaustive import assert_never
from ..contract import contents as c
from ..contract import fair as f
from ..contract import items as i
from ..contract import queues as q
from ..contract import task_administration as a
from ..contract import task_results as r
from ..contract import tasks as t
from ..contract.requests import ItemRequest, QueueRequest, Request, TaskRequest
from . import item_ways, result_ways, task_ways
from .ways import Way

#: Those that were looked up, by the request's type.
_known: dict[type, Way] = {}

#: What this engine answers without asking: it reserves no items, and has no roles.
UNASKED = (i.Reserve, i.EndReservation, i.ReleaseSpace, q.Unlock)


def way(request: Request) -> Way:
    """How such a request is made."""
    found = _known.get(type(request))
    if found is None:
        found = _known[type(request)] = _choose(request)
    return found


def _choose(request: Request) -> Way:
    if isinstance(request, QueueRequest):
        return _every(request)
    if isinstance(request, TaskRequest):
        return _task(request)
    return _item(request)


def _every(request: QueueRequest) -> Way:
    match request:
        case q.Exists():
            return item_ways.EXISTS
        case q.GetDiscipline():
            return item_ways.GET_DISCIPLINE
        case q.Enlist():
            return item_ways.ENLIST
        case q.GetUsers():
            return item_ways.GET_USERS
        case q.Dismiss():
            return item_ways.DISMISS
        case _:
            assert_never(request)


def _item(request: ItemRequest) -> Way:
    match request:
        case i.Put():
            return item_ways.PUT
        case i.Take():
            return item_ways.TAKE
        case i.TakeBack():
            return item_ways.TAKE_BACK
        case i.Prefetch():
            return item_ways.PREFETCH
        case i.HandOut():
            return item_ways.HAND_OUT
        case i.Acknowledge():
            return item_ways.ACKNOWLEDGE
        case i.SetAside():
            return item_ways.SET_ASIDE
        case i.GetRejected():
            return item_ways.GET_REJECTED
        case i.RequeueRejected():
            return item_ways.REQUEUE_REJECTED
        case i.DropRejected():
            return item_ways.DROP_REJECTED
        case i.PeekItems():
            return item_ways.PEEK
        case i.PeekPlaced():
            return item_ways.PEEK_PLACED
        case i.Purge():
            return item_ways.PURGE
        case i.Requeue():
            return item_ways.REQUEUE
        case i.Renew():
            return item_ways.RENEW
        case i.Retire():
            return item_ways.RETIRE
        case q.Open():
            return item_ways.OPEN
        case q.CountDone():
            return item_ways.COUNT_DONE
        case q.Join():
            return item_ways.JOIN
        case q.GetLength():
            return item_ways.GET_LENGTH
        case q.GetStats():
            return item_ways.GET_STATS
        case q.IsClosed():
            return item_ways.IS_CLOSED
        case q.SetBound():
            return item_ways.SET_BOUND
        case q.Close():
            return item_ways.CLOSE
        case q.Delete():
            return item_ways.DELETE
        case q.Inspect():
            return item_ways.INSPECT
        case c.StoreChunks():
            return item_ways.STORE_CHUNKS
        case c.ReadChunks():
            return item_ways.READ_CHUNKS
        case c.SweepContents():
            return item_ways.SWEEP_CONTENTS
        case f.GetSnapshot():
            return item_ways.GET_SNAPSHOT
        case f.GetKeys():
            return item_ways.GET_KEYS
        case f.GetQueued():
            return item_ways.GET_QUEUED
        case i.Reserve() | i.EndReservation() | i.ReleaseSpace() | q.Unlock():
            raise AssertionError("answered without asking")
        case _:
            assert_never(request)


def _task(request: TaskRequest) -> Way:
    match request:
        case t.OpenTasks():
            return task_ways.OPEN
        case t.PutTasks() | t.PutAwaited():
            return task_ways.PUT
        case t.TakeTasks():
            return task_ways.TAKE
        case t.AckTask():
            return task_ways.ACK
        case t.ReleaseTask():
            return task_ways.RELEASE
        case t.BuryTask():
            return task_ways.BURY
        case t.TouchTask():
            return task_ways.TOUCH
        case t.AckTasks():
            return task_ways.ACK_MANY
        case a.ChangeTask():
            return task_ways.CHANGE
        case a.KickTasks():
            return task_ways.KICK
        case a.ListTasks():
            return task_ways.LIST
        case t.GetTask():
            return task_ways.GET
        case t.AwaitTask():
            return task_ways.AWAIT
        case t.CountReady():
            return task_ways.COUNT_READY
        case a.GetTaskCounts():
            return task_ways.COUNT
        case a.TruncateTasks():
            return task_ways.TRUNCATE
        case t.RenewTaker():
            return task_ways.RENEW
        case t.RequeueTasks():
            return task_ways.REQUEUE
        case t.CloseTasks():
            return task_ways.CLOSE
        case t.AreTasksClosed():
            return task_ways.IS_CLOSED
        case t.DeleteTasks():
            return task_ways.DELETE
        case r.OpenInbox():
            return result_ways.OPEN
        case r.WatchTasks():
            return result_ways.WATCH
        case r.TakeNotices():
            return result_ways.TAKE
        case r.CloseInbox():
            return result_ways.CLOSE
        case c.StoreChunks():
            return item_ways.STORE_CHUNKS
        case c.ReadChunks():
            return item_ways.READ_CHUNKS
        case c.SweepContents():
            return item_ways.SWEEP_CONTENTS
        case _:
            assert_never(request)
