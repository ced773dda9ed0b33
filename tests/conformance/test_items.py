"""What a first engine does: queues are opened and ended, items are put and taken for good. Of every
engine, by its sessions' verbs, and by the classes that need no more."""

from __future__ import annotations

import asyncio

import contents
import engines
import pytest
from sessions import ask, bind

from pressure_mp import Queue, SimpleQueue, aio
from pressure_mp.encoding.large import CHUNK, token_of
from pressure_mp.engines import registry
from pressure_mp.engines.contract.contents import ReadChunks, StoreChunks, SweepContents
from pressure_mp.engines.contract.hosts import Forget, GetRemembered, Leave, Remember
from pressure_mp.engines.contract.items import Added, Put, SetAside, Take, Taken
from pressure_mp.engines.contract.levels import Level
from pressure_mp.engines.contract.queues import (
    Close,
    Delete,
    Dismiss,
    Enlist,
    Existing,
    Exists,
    GetDiscipline,
    GetLength,
    GetStats,
    GetUsers,
    How,
    IsClosed,
    Open,
    Opened,
    SetBound,
)
from pressure_mp.engines.contract.replies import NoItem, NoSpace, Outcome
from pressure_mp.operations.large import in_requests

pytestmark = pytest.mark.levels(Level.ITEMS)

#: Of a queue that is there. Without one, each is told so.
OF_A_QUEUE = [
    *(Put([b"1"]), Take(), SetAside(b"1"), GetLength(), GetStats(), IsClosed(), SetBound(1)),
    *(Close(), Delete(), GetDiscipline(), Enlist("host/1/1/aa"), GetUsers(), Dismiss(())),
    StoreChunks("token", 0, [[memoryview(b"chunk")]]),
]


@pytest.fixture
def queue(url, name):
    """Makes a request of a queue, which need not exist."""
    binding = bind(url, name)
    yield lambda request: ask(binding, request)
    ask(binding, Delete())


def test_without_a_queue_all_are_told_that_there_is_none(queue):
    for request in OF_A_QUEUE:
        assert queue(request) is Outcome.MISSING, request
        assert queue(Exists()) is False


def test_a_queue_is_created_once_and_gone_when_it_is_deleted(queue):
    assert queue(Open(How.ATTACH, 3)) is Outcome.MISSING
    assert queue(Open(How.CREATE, 3)) == Opened(3)
    assert queue(Open(How.CREATE, 5)) == Existing(3)
    assert queue(Open(How.ATTACH, 5)) == queue(Open(How.OPEN, 5)) == Opened(3)
    assert (queue(Exists()), queue(GetDiscipline())) == (True, "fifo")
    queue(Put([b"1"]))
    assert queue(Delete()) is Outcome.DONE
    assert queue(Exists()) is False
    assert queue(Open(How.OPEN, 0)) == Opened(0)
    assert queue(GetLength()) == 0


def test_items_are_taken_in_the_order_in_which_they_were_put(queue):
    queue(Open(How.CREATE, 0))
    assert queue(Take(waits=False)) == NoItem()
    assert queue(Put([b"1", b"2", b"\0"])) == Added(3)
    assert queue(Put([b"4"])) == Added(1)
    assert queue(GetLength()) == 4
    assert queue(Take()) == Taken([b"1"])
    assert queue(Take(limit=2)) == Taken([b"2", b"\0"])
    assert queue(Take(limit=9)) == Taken([b"4"])


def test_no_more_are_put_than_the_bound_says(queue):
    queue(Open(How.CREATE, 2))
    assert queue(Put([b"1", b"2", b"3"])) == Added(2)
    assert queue(Put([b"3"], waits=False)) == NoSpace(2)
    assert queue(Put([b"3"], overfill=True)) == Added(1)
    assert queue(SetBound(4)) is Outcome.DONE
    assert queue(Put([b"4", b"5"])) == Added(1)
    assert queue(SetBound(0)) is Outcome.DONE
    assert queue(Put([b"5"] * 9)) == Added(9)


def test_a_queue_that_was_shut_down_gives_out_what_it_has(queue):
    queue(Open(How.CREATE, 0))
    queue(Put([b"1"]))
    assert queue(IsClosed()) is False
    assert queue(Close(once=True)) is Outcome.DONE
    assert (queue(Close(once=True)), queue(Close())) == (Outcome.CLOSED, Outcome.DONE)
    assert queue(IsClosed()) is True
    assert queue(Put([b"2"])) is Outcome.CLOSED
    assert (queue(Take()), queue(Take())) == (Taken([b"1"]), Outcome.CLOSED)


def test_a_shutdown_may_drop_queued_items(queue):
    queue(Open(How.CREATE, 0))
    queue(Put([b"1"]))
    assert queue(Close(immediate=True)) is Outcome.DONE
    assert queue(Take()) is Outcome.CLOSED


def test_items_and_bytes_are_counted(queue):
    queue(Open(How.CREATE, 7))
    queue(Put([b"1", b"22", b"333"]))
    queue(Take(limit=2))
    assert queue(SetAside(b"22")) is Outcome.DONE
    stats = queue(GetStats())
    assert (stats.length, stats.maxsize, stats.closed) == (1, 7, False)
    assert (stats.produced_messages, stats.produced_bytes) == (3, 6)
    assert (stats.consumed_messages, stats.consumed_bytes) == (2, 3)
    assert (stats.unfinished, stats.rejected, stats.in_flight) == (2, 1, 0)
    assert stats.producer
    assert stats.producer == stats.consumer


def test_an_anonymous_queue_goes_with_the_last_of_its_users(queue):
    first, second = "host/1/1/aaaaaaaa", "host/2/2/bbbbbbbb"
    queue(Open(How.CREATE, 0, first))
    assert queue(Enlist(second)) is Outcome.DONE
    assert sorted(queue(GetUsers())) == [first, second]
    assert queue(Dismiss((first,))) == 1
    assert queue(Dismiss((first, second))) == 0
    assert queue(Exists()) is False


def test_contents_are_read_until_they_are_swept(queue):
    queue(Open(How.CREATE, 0))
    large = contents.sample()
    token = token_of(large.manifest)
    for first, chunks in in_requests(large.segments):
        assert queue(StoreChunks(token, first, chunks)) is Outcome.DONE
    rooms = [bytearray(CHUNK), bytearray(CHUNK)]
    reading = ReadChunks(token, 0, [[memoryview(room)] for room in rooms])
    assert queue(reading) is Outcome.DONE
    assert rooms == [b"x" * CHUNK] * 2
    while queue(SweepContents(token)):
        pass
    assert queue(reading) is Outcome.LOST


def test_a_host_notes_its_anonymous_queues(url, name):
    address = registry.resolve(url, prefix=f"__pressure__:{name}").started()
    host = registry.engine(address).host(name)
    keys = [(f"{name}-{number}", "fifo") for number in range(3)]
    for key in keys:
        assert ask(host, Remember(key)) is Outcome.DONE
    assert sorted(ask(host, GetRemembered())) == keys
    assert ask(host, Leave(keys)) is Outcome.DONE
    assert ask(host, Forget(keys)) is Outcome.DONE
    assert ask(host, GetRemembered()) == []


@pytest.mark.parametrize("kind", [Queue, SimpleQueue])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.usefixtures("world")
def test_objects_large_and_small_go_through(url, name, kind, named, world):
    q = world(kind)(name=name if named else None, url=url)
    items = [1, {"two": [2]}, bytes(CHUNK * 2 + 1), None]
    for item in items:
        q.put(item)
    assert [q.get(timeout=60) for _ in items] == items
    assert q.empty()


def test_a_put_and_a_get_wait_in_an_event_loop(url, name):
    async def main():
        async with aio.Queue(1, name, url=url) as q:
            getting = asyncio.ensure_future(q.get())
            putting = asyncio.ensure_future(q.put_many(range(3)))
            found = [await getting, await q.get(), await q.get()]
            await putting
            await q.delete()
            return found

    assert asyncio.run(main()) == [0, 1, 2]


def test_an_address_says_which_levels_its_engine_has(url):
    assert registry.parse(url).capabilities.levels == engines.of(url).levels
