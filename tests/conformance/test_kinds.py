"""A name belongs to one queue of one kind. Requests for a queue of another kind find none under
that name, also those of a handle whose queue was deleted. Of every engine, by its sessions'
verbs."""

from __future__ import annotations

import pytest
from sessions import ask, bind

from pressure_mp.encoding import sort_keys
from pressure_mp.engines import registry
from pressure_mp.engines.contract.brokers import MayGet, QueueRenewal, RenewAll
from pressure_mp.engines.contract.contents import ReadChunks, StoreChunks
from pressure_mp.engines.contract.fair import GetKeys, GetQueued, GetSnapshot
from pressure_mp.engines.contract.forwarding import Forward, NotSettled
from pressure_mp.engines.contract.items import (
    Acknowledge,
    Added,
    DropRejected,
    EndPrefetch,
    GetRejected,
    HandedOut,
    Hold,
    PeekItems,
    Prefetch,
    Purge,
    Put,
    Renew,
    Requeue,
    RequeueRejected,
    Retire,
    SetAside,
    Take,
    Taken,
)
from pressure_mp.engines.contract.levels import Level
from pressure_mp.engines.contract.queues import (
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
    How,
    Inspect,
    IsClosed,
    Join,
    Mismatch,
    Open,
    Opened,
    SetBound,
)
from pressure_mp.engines.contract.replies import NoItem, Outcome
from pressure_mp.engines.contract.task_records import TaskSettings
from pressure_mp.engines.contract.tasks import (
    CloseTasks,
    CountReady,
    DeleteTasks,
    OpenedTasks,
    OpenTasks,
    PutTasks,
    TakenTasks,
    TakeTasks,
)

pytestmark = pytest.mark.levels(Level.ITEMS)

ME = "host/1/1/aa"
SORT_KEYS = {
    "fifo": (),
    "lifo": (),
    "priority": (sort_keys.encode(1),),
    "fair": (b"1 " + sort_keys.encode("key"),),
}
SETTINGS = TaskSettings(ttr=0, ttl=0, zombie=0, keep=False, max_deliveries=20, id="uuid", per_key=0)

#: Pairs of kinds: of the queue that is there, and of the handle.
PAIRS = [(there, stale) for there in SORT_KEYS for stale in SORT_KEYS if there != stale]


def of_items(kind):
    """Requests that a handle of this kind makes at any engine."""
    yield Put([b"2"], SORT_KEYS[kind])
    yield Put([b"2"], SORT_KEYS[kind], waits=False)
    yield Put([b"2", b"3"], SORT_KEYS[kind] * 2)
    yield from (Take(), Take(waits=False), Take(limit=9), Take(until_ended=True))
    yield from (SetAside(b"1"), GetLength(), GetStats(), IsClosed(), SetBound(1))
    yield from (Enlist(ME), GetUsers(), Dismiss((ME,)), Close(), Close(immediate=True), Delete())
    yield StoreChunks("token", 0, [[memoryview(b"chunk")]])


def of_deliveries(kind):
    """Requests at an engine that keeps deliveries, and looks into queues."""
    yield from (CountDone(), Join(), Renew(ME, False, True), Retire(ME), Inspect(9))
    yield from (PeekItems(0, 9), Purge(), GetRejected(9), DropRejected(b"1"))
    if kind in ("fifo", "lifo"):
        yield RequeueRejected(b"1")
    if kind == "fifo":
        yield from (Take(hold=Hold(ME, 1)), Prefetch(f"{ME}#1", 1, 0, 0, 5))
        yield from (Acknowledge(ME, 1), Acknowledge(ME, None), SetAside(b"1", ME, 1), Requeue(ME))
    if kind == "fair":
        yield from (GetSnapshot(9), GetKeys(), GetQueued(SORT_KEYS["fair"][0][2:]))


@pytest.fixture
def at(url, name):
    """Makes requests as handles of a kind do. No queue of the name is left."""

    def at(kind):
        binding = bind(url, name, kind)
        return lambda request: ask(binding, request)

    yield at
    for kind in SORT_KEYS:
        at(kind)(Delete())


def make(queue, kind):
    assert queue(Open(How.CREATE, 7)) == Opened(7)
    assert queue(Put([b"1"], SORT_KEYS[kind])) == Added(1)
    assert queue(Exists()) is True


def check_whole(queue, kind):
    """The queue has the item that was put, and serves as before."""
    assert queue(Open(How.ATTACH, 7)) == Opened(7)
    assert queue(Put([b"2"], SORT_KEYS[kind], waits=False)) == Added(1)
    assert sorted(queue(Take(waits=False)).items[0] for _ in "12") == [b"1", b"2"]
    assert queue(Take(waits=False)) == NoItem()


@pytest.mark.parametrize(("kind", "stale"), PAIRS)
def test_a_handle_of_another_kind_finds_no_queue_and_changes_none(at, kind, stale):
    queue, other = at(kind), at(stale)
    make(other, stale)
    other(Take())
    other(Delete())
    make(queue, kind)
    before = queue(GetStats())
    for request in of_items(stale):
        assert other(request) is Outcome.MISSING, request
    assert other(Exists()) is False
    assert other(ReadChunks("token", 0, [[memoryview(bytearray(5))]])) is Outcome.LOST
    assert queue(GetStats()) == before
    check_whole(queue, kind)


@pytest.mark.levels(Level.DELIVERIES, Level.AHEAD, Level.ADMINISTRATION)
@pytest.mark.parametrize(("kind", "stale"), PAIRS)
def test_no_other_request_of_such_a_handle_finds_the_queue(at, kind, stale):
    queue, other = at(kind), at(stale)
    make(queue, kind)
    before = queue(GetStats())
    for request in of_deliveries(stale):
        assert other(request) is Outcome.MISSING, request
    if stale == "fifo":
        assert other(EndPrefetch(f"{ME}#1", 1, 0)) == HandedOut(0)
    assert queue(GetStats()) == before
    check_whole(queue, kind)


@pytest.mark.parametrize(("kind", "stale"), [pair for pair in PAIRS if "fifo" not in pair])
def test_a_handle_of_another_kind_is_told_the_kind_when_it_opens_the_queue(at, kind, stale):
    make(at(kind), kind)
    assert at(stale)(Open(How.OPEN, 7)) == Mismatch("discipline", kind, stale)
    assert at(stale)(GetDiscipline()) == kind


@pytest.mark.parametrize(("kind", "stale"), PAIRS)
def test_a_session_that_waits_at_a_queue_which_is_made_anew_of_another_kind_is_told(
    url, name, at, kind, stale
):
    queue, other = at(kind), at(stale)
    assert other(Open(How.CREATE, 0)) == Opened(0)
    waiting = bind(url, name, stale).session()
    try:
        found = waiting.call(Take())
        assert found == NoItem()
        other(Delete())
        make(queue, kind)
        waiting.wait(found, 5)
        assert waiting.call(Take()) is Outcome.MISSING
    finally:
        waiting.end()
    check_whole(queue, kind)


@pytest.mark.levels(Level.DELIVERIES)
@pytest.mark.parametrize(("kind", "stale"), PAIRS)
def test_no_request_to_the_broker_takes_the_queue_for_one_of_another_kind(
    full_url, name, kind, stale
):
    address = registry.parse(full_url).started()
    broker = registry.engine(address).broker()
    queue = bind(full_url, name, kind)
    try:
        assert ask(queue, Open(How.CREATE, 7)) == Opened(7)
        renewal = QueueRenewal(name, stale, 5000, Renew(ME, False, True))
        assert ask(broker, RenewAll([renewal])) == [None]
        assert ask(queue, Renew(ME, False, False)).producers == {}
        assert ask(broker, MayGet([(name, stale)])) in ([True], [None])  # it is told at once
    finally:
        ask(queue, Delete())


@pytest.mark.levels(Level.DELIVERIES)
@pytest.mark.parametrize("kind", [kind for kind in SORT_KEYS if kind != "fifo"])
def test_a_delivery_is_forwarded_only_from_and_to_queues_of_the_kinds_that_are_said(
    url, name, at, kind
):
    source, there = bind(url, name + "source"), at(kind)
    try:
        ask(source, Open(How.CREATE, 0))
        ask(source, Put([b"2"]))
        (number,) = ask(source, Take(hold=Hold(ME, 1))).numbers
        make(there, kind)
        settle = Acknowledge(ME, number)
        put = Put([b"2"], waits=False)
        assert at("fifo")(Forward(source, settle, put)) is Outcome.MISSING
        gone = Forward(bind(url, name), Acknowledge(ME, 1), put)
        assert ask(source, gone) == NotSettled(Outcome.MISSING)
        assert there(Forward(source, settle, Put([b"2"], SORT_KEYS[kind], waits=False)))
        assert sorted(there(Take()).items[0] for _ in "12") == [b"1", b"2"]
    finally:
        ask(source, Delete())


@pytest.mark.levels(Level.TASKS)
@pytest.mark.parametrize("stale", SORT_KEYS)
def test_a_handle_of_items_finds_no_queue_of_tasks(at, stale):
    queue, other = at("tasks"), at(stale)
    assert queue(OpenTasks(How.CREATE, SETTINGS)) == OpenedTasks(SETTINGS)
    try:
        assert queue(PutTasks([(b"1", b"data")], "uuid")) == [b"1"]
        for request in (*of_items(stale), *of_deliveries(stale)):
            assert other(request) is Outcome.MISSING, request
        assert other(Exists()) is False
        assert queue(CountReady()) == 1
        assert isinstance(queue(TakeTasks(ME, 1)), TakenTasks)
    finally:
        queue(DeleteTasks())


@pytest.mark.levels(Level.TASKS)
@pytest.mark.parametrize("kind", SORT_KEYS)
def test_a_handle_of_tasks_finds_no_queue_of_items(at, kind):
    queue, tasks = at(kind), at("tasks")
    make(queue, kind)
    put, take = PutTasks([(b"1", b"data")], "uuid"), TakeTasks(ME, 1)
    others = Enlist(ME), GetUsers(), Dismiss((ME,)), CountReady(), CloseTasks(), DeleteTasks()
    for request in (put, take, *others):
        assert tasks(request) is Outcome.MISSING, request
    assert tasks(Exists()) is False
    assert queue(Take()) == Taken([b"1"])
    check_nothing_else(queue)


def check_nothing_else(queue):
    assert queue(GetUsers()) == []
    assert queue(Take(waits=False)) == NoItem()
