"""A call that is sent again, since its connection broke, is done once."""

from __future__ import annotations

import threading

import pytest
from sessions import Looped, ask, bind
from waiting import HOURS

from pressure_mp.engines.blocking_coroutines import finish
from pressure_mp.engines.contract.items import (
    Acknowledge,
    Added,
    EndPrefetch,
    Hold,
    Prefetch,
    Put,
    Requeue,
    Take,
    Taken,
)
from pressure_mp.engines.contract.queues import CountDone, GetLength, GetStats, How, Open
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.engines.contract.session import ONE_TRY
from pressure_mp.engines.contract.task_records import TaskSettings
from pressure_mp.engines.contract.tasks import (
    Acknowledged,
    AckTasks,
    CountReady,
    OpenTasks,
    PutTasks,
    RequeueTasks,
    TakeTasks,
)
from pressure_mp.engines.postgres import errors, wire
from pressure_mp.engines.postgres.pool import Pool
from pressure_mp.exceptions import BrokerError, BrokerUnavailable

OWNER = "elsewhere/1/1/aaaaaaaa"


@pytest.fixture
def binding(postgres, name):
    found = bind(postgres.limited_url, name)
    ask(found, Open(How.CREATE, 0))
    return found


@pytest.fixture(params=["threads", "asyncio"])
def session(request, binding):
    """One whose connections break as ``breaking`` says."""
    found = binding.session() if request.param == "threads" else Looped(binding)
    yield found
    found.end()


def execute_by(patch, executed):
    """From now on ``executed`` gets the function that executes a statement, and its arguments; but
    not for statements of threads of the package, which renew leases. Returns that function."""
    execute = wire.Wire.execute

    async def executing(*args):
        if threading.current_thread().name.startswith("pressure_mp"):
            return await execute(*args)
        return await executed(execute, *args)

    patch.setattr(wire.Wire, "execute", executing)
    return execute


class Breaking:
    """From now on: so many connections break when the next statements were sent, and done."""

    def __init__(self, patch, times):
        self.left = times

        async def executed(execute, this, *args):
            rows = await execute(this, *args)
            if self.left:
                self.left -= 1
                this.close()
                raise errors.ConnectionLost("it broke")
            return rows

        execute_by(patch, executed)


@pytest.mark.parametrize("times", [1, 2])
def test_a_put_and_a_take_are_done_once(session, binding, monkeypatch, times):
    breaking = Breaking(monkeypatch, times)
    assert session.call(Put([b"1", b"2"])) == Added(2)
    breaking.left = times
    assert session.call(Take(2)) == Taken([b"1", b"2"])
    assert not breaking.left
    stats = ask(binding, GetStats())
    assert (stats.length, stats.produced_messages, stats.consumed_messages) == (0, 2, 2)


READER = f"{OWNER}#1"


@pytest.mark.parametrize("times", [1, 2])
def test_items_are_taken_in_flight_once_and_the_repeated_take_tells_the_same(
    session, binding, monkeypatch, times
):
    ask(binding, Put([b"0", b"1", b"2", b"3"]))
    breaking = Breaking(monkeypatch, times)
    assert session.call(Take(2, Hold(OWNER, 1))) == Taken([b"0", b"1"], [1, 2])
    assert ask(binding, Requeue(OWNER)) is Outcome.DONE
    ask(binding, Take(1, Hold(OWNER, 2)))
    breaking.left = times
    assert session.call(Take(3, Hold(OWNER, 3))) == Taken([b"1", b"2", b"3"], [2, 3, 4])
    assert not breaking.left
    stats = ask(binding, GetStats())
    assert (stats.length, stats.in_flight) == (0, 4)


@pytest.mark.parametrize("times", [1, 2])
def test_items_are_prefetched_once_and_the_repeated_call_tells_the_same(
    session, binding, monkeypatch, times
):
    ask(binding, Put([b"%d" % number for number in range(6)]))
    breaking = Breaking(monkeypatch, times)
    assert session.call(Prefetch(READER, 1, 0, 0, 2)) == Taken([b"0", b"1"])
    breaking.left = times
    assert session.call(Prefetch(READER, 2, 1, 1, 2)) == Taken([b"2", b"3"])
    breaking.left = times
    assert session.call(Prefetch(READER, 2, 2, 0, 0)) == Taken([])  # tells, and takes none
    assert not breaking.left
    stats = ask(binding, GetStats())
    assert (stats.length, stats.in_flight) == (2, 2)


class Between:
    """Makes a request between the first try of a call and the second one."""

    def __init__(self, patch, binding, request):
        self.reply = None
        Breaking(patch, 1)

        async def make(this, seconds):
            self.reply = ask(binding, request)

        patch.setattr(Pool, "sleep", make)


def test_a_repeated_take_takes_again_if_its_items_went_back_meanwhile(binding, monkeypatch):
    ask(binding, Put([b"0", b"1", b"2"]))
    between = Between(monkeypatch, binding, Requeue(OWNER))
    assert ask(binding, Take(2, Hold(OWNER, 1))) == Taken([b"0", b"1"], [1, 2])
    assert between.reply is Outcome.DONE
    stats = ask(binding, GetStats())
    assert (stats.length, stats.in_flight) == (1, 2)


@pytest.mark.parametrize("request_", [Requeue(OWNER), EndPrefetch(READER, 2, 1)])
@pytest.mark.parametrize("kept", [0, 1])
def test_a_repeated_prefetch_is_late_if_its_items_went_back_meanwhile(
    binding, monkeypatch, request_, kept
):
    ask(binding, Put([b"0", b"1", b"2", b"3"]))
    assert ask(binding, Prefetch(READER, 1, 0, 0, 1)) == Taken([b"0"])
    with monkeypatch.context() as patch:
        between = Between(patch, binding, request_)
        assert ask(binding, Prefetch(READER, 2, 1 - kept, kept, 2)) is Outcome.LATE
    assert between.reply is not None
    assert ask(binding, GetStats()).in_flight == 0


def test_the_reply_to_a_take_is_not_kept_beside_the_items_in_flight(postgres, binding):
    ask(binding, Put([b"x" * 1000] * 20))
    assert len(ask(binding, Take(10, Hold(OWNER, 1))).items) == 10
    assert len(ask(binding, Prefetch(READER, 1, 0, 0, 10)).items) == 10
    kept = "octet_length(v.items::text), octet_length(v.info::text), octet_length(v.undo::text)"
    kept = (
        f"SELECT {kept} FROM pressure_mp.calls v, pressure_mp.queues q "
        f"WHERE v.status = 'taken' AND v.queue = q.id AND q.name = '{binding.name}'"
    )
    found = postgres.execute(kept)
    assert len(found) == 2
    assert all((size or 0) < 1000 for sizes in found for size in sizes)


@pytest.fixture
def noted(monkeypatch):
    """What quick calls know stays worth knowing: the queue's own row has their notes."""
    from pressure_mp.engines.postgres import quick

    monkeypatch.setattr(quick, "_FRESH", HOURS)


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize("times", [1, 2])
def test_single_items_are_put_and_taken_once(session, binding, monkeypatch, times):
    other = binding.session()  # the queue's row can have the note of one of them
    breaking = Breaking(monkeypatch, 0)
    for _ in range(2):
        for item, one in ((b"1", session), (b"2", session), (b"3", other), (b"4", session)):
            breaking.left = times
            assert one.call(Put([item])) == Added(1)
            assert not breaking.left
        for item, one in ((b"1", session), (b"2", session), (b"3", other), (b"4", session)):
            breaking.left = times
            assert one.call(Take()) == Taken([item])
            assert not breaking.left
    other.end()
    stats = ask(binding, GetStats())
    assert (stats.length, stats.produced_messages, stats.consumed_messages) == (0, 8, 8)


def test_an_acknowledgement_and_a_task_done_that_are_sent_again_count_once(
    session, binding, monkeypatch
):
    ask(binding, Put([b"1", b"2"]))
    taken = ask(binding, Take(2, Hold(OWNER, 1)))
    breaking = Breaking(monkeypatch, 1)
    assert session.call(Acknowledge(OWNER, taken.numbers[0])) is Outcome.DONE
    breaking.left = 1
    assert session.call(CountDone()) is Outcome.DONE
    assert not breaking.left
    assert ask(binding, GetStats()).unfinished == 0


def test_a_call_that_arrives_after_its_repeat_does_nothing(binding, monkeypatch):
    """The first connection was silent, and what was sent over it comes late."""
    session = binding.session()
    late = Late(monkeypatch, errors.ConnectionLost("it is silent"))
    assert session.call(Put([b"1"])) == Added(1)
    session.end()
    with pytest.raises(errors.MadeBefore):
        late.arrive()
    assert ask(binding, GetLength()) == 1


class Late:
    """The next statement is sent over a connection that is silent, and arrives when told to."""

    def __init__(self, patch, error):
        self._sent: list = []

        async def executed(execute, this, *args):
            if not self._sent:
                self._sent.append((this, args))
                raise error
            return await execute(this, *args)

        self._execute = execute_by(patch, executed)
        patch.setattr(wire.Wire, "close", lambda this: None)

    def arrive(self):
        ((this, args),) = self._sent
        return finish(self._execute(this, *args))


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize(("request_", "length"), [(Put([b"2"]), 2), (Take(), 0)])
@pytest.mark.parametrize("others_call", [False, True])
def test_a_quick_call_that_arrives_after_its_repeat_does_nothing(
    binding, monkeypatch, request_, length, others_call
):
    session, other = binding.session(), bind(binding.engine.address.url, binding.name).session()
    for request in (Put([b"0"]), Put([b"1"]), Take()):  # what comes next has its note in the row
        session.call(request)
    session.call(Put([b"1"]))
    session.call(Take())
    with monkeypatch.context() as patch:
        late = Late(patch, errors.ConnectionLost("it is silent"))
        session.call(request_)
        if others_call:
            for request in (Put([b"another"]), Put([b"another"]), Take(), Take()):
                other.call(request)
        assert late.arrive() == [[None]]
    session.end()
    other.end()
    assert ask(binding, GetLength()) == length


@pytest.mark.usefixtures("noted")
def test_a_quick_put_that_arrives_late_does_not_hide_that_another_put_was_done(
    binding, monkeypatch
):
    """The queue's row has the note of one put only; another session makes the next put."""
    for number in range(3):
        ask(binding, Put([b"%d" % number]))
    with monkeypatch.context() as patch:
        late = Late(patch, errors.ConnectionLost("it is silent"))
        gives_up = binding.session()
        with pytest.raises(BrokerUnavailable):
            gives_up.call(Put([b"late"]), ONE_TRY)
        gives_up.end()

    async def breaking(execute, this, *args):
        await execute(this, *args)
        monkeypatch.setattr(wire.Wire, "execute", execute)
        assert late.arrive() != [[None]]
        raise errors.ConnectionLost("it broke")

    execute_by(monkeypatch, breaking)
    assert ask(binding, Put([b"3"])) == Added(1)
    assert ask(binding, Take(10)) == Taken([b"0", b"1", b"2", b"3", b"late"])


@pytest.mark.usefixtures("noted")
def test_a_quick_take_that_was_taken_back_before_it_arrived_takes_nothing(binding, monkeypatch):
    session = binding.session()
    for request in (Put([b"1"]), Take(), Put([b"2"]), Take(), Put([b"3"])):
        session.call(request)
    with monkeypatch.context() as patch:
        late = Late(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            session.call(Take())
        session.interrupted()
        assert ask(binding, session.taken) is Outcome.DONE
        assert late.arrive() == [[None]]
    session.end()
    assert ask(binding, Take()) == Taken([b"3"])


@pytest.mark.usefixtures("noted")
def test_an_item_of_a_quick_take_goes_back_to_its_place_once(binding):
    session = binding.session()
    for request in (Put([b"1"]), Take(), Put([b"2"]), Put([b"3"])):
        session.call(request)
    assert session.call(Take()) == Taken([b"2"])
    for _ in range(2):
        assert ask(binding, session.taken) is Outcome.DONE
    session.end()
    assert ask(binding, Take(2)) == Taken([b"2", b"3"])


def test_a_take_that_was_taken_back_before_it_arrived_takes_nothing(binding, monkeypatch):
    ask(binding, Put([b"1"]))
    session = binding.session()
    late = Late(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        session.call(Take())
    session.interrupted()
    taken = session.taken
    session.end()
    assert ask(binding, taken) is Outcome.DONE
    with pytest.raises(errors.MadeBefore):
        late.arrive()
    assert ask(binding, GetLength()) == 1


def test_items_of_a_take_go_back_to_their_places_once(binding):
    ask(binding, Put([b"1", b"2", b"3"]))
    session = binding.session()
    assert session.call(Take(2)) == Taken([b"1", b"2"])
    for _ in range(2):
        assert ask(binding, session.taken) is Outcome.DONE
    session.end()
    assert ask(binding, Take(3)) == Taken([b"1", b"2", b"3"])
    assert ask(binding, GetStats()).consumed_messages == 3


@pytest.fixture
def tasks(postgres, name):
    found = bind(postgres.limited_url, name, "tasks")
    ask(found, OpenTasks(How.CREATE, TaskSettings(60_000, 0, 0, False, 0, "auto_increment", 0)))
    return found


def put(tasks, number):
    return ask(tasks, PutTasks([(b"", b"%d" % at) for at in range(number)], "auto_increment"))


def test_tasks_are_taken_once_and_the_repeated_take_tells_the_same_tasks(tasks, monkeypatch):
    put(tasks, 5)
    Breaking(monkeypatch, 1)
    taken = ask(tasks, TakeTasks(OWNER, 1, 3))
    assert [(task.id, task.data, task.record.state) for task in taken.tasks] == [
        (b"1", b"0", "T"),
        (b"2", b"1", "T"),
        (b"3", b"2", "T"),
    ]
    assert taken.processed is None
    assert ask(tasks, CountReady()) == 2


def test_a_repeated_take_tells_what_it_acknowledged(tasks, monkeypatch):
    put(tasks, 3)
    (first,) = ask(tasks, TakeTasks(OWNER, 1)).tasks
    breaking = Breaking(monkeypatch, 1)
    taken = ask(tasks, TakeTasks(OWNER, 2, 2, acks=[Acknowledged(first.id, first.record)]))
    assert ([task.id for task in taken.tasks], taken.processed.state) == ([b"2", b"3"], "X")
    (second, _) = taken.tasks
    breaking.left = 1
    taken = ask(tasks, TakeTasks(OWNER, 3, acks=[Acknowledged(second.id, second.record)]))
    assert (taken.tasks, taken.processed.state) == ([], "X")


def test_a_repeated_take_has_no_tasks_that_went_back_meanwhile(tasks, monkeypatch):
    put(tasks, 2)
    back = []

    async def go_back(this, seconds):  # between the two tries
        back.append(ask(tasks, RequeueTasks(OWNER, "", 1, call=1)))

    monkeypatch.setattr(Pool, "sleep", go_back)
    Breaking(monkeypatch, 1)
    taken = ask(tasks, TakeTasks(OWNER, 1, 2))
    assert back == [1]
    assert [task.id for task in taken.tasks] == [b"2"]


def test_tasks_are_acknowledged_once(tasks, monkeypatch):
    put(tasks, 2)
    ask(tasks, TakeTasks(OWNER, 1, 2))
    Breaking(monkeypatch, 1)
    reply = ask(tasks, AckTasks(OWNER, [(b"1", 1), (b"2", 1)]))
    assert (reply.processed.state, reply.refused) == ("X", {})


def test_the_reply_to_a_take_is_not_kept_beside_the_tasks(postgres, tasks):
    ask(tasks, PutTasks([(b"", b"x" * 1000)] * 10, "auto_increment"))
    sizes = "octet_length(v.items::text), octet_length(v.info::text)"
    kept = f"SELECT v.ctid, {sizes} FROM pressure_mp.calls v WHERE status = 'taken'"
    before = postgres.execute(kept)
    taken = ask(tasks, TakeTasks(OWNER, 1, 10))
    assert len(taken.tasks) == 10
    ((_, *sizes),) = set(postgres.execute(kept)) - set(before)
    assert all((size or 0) < 1000 for size in sizes)


def test_tasks_are_put_once(tasks, monkeypatch):
    breaking = Breaking(monkeypatch, 1)
    assert put(tasks, 1) == [b"1"]
    breaking.left = 1
    assert put(tasks, 3) == [b"2", b"3", b"4"]
    assert put(tasks, 1) == [b"5"]
    assert ask(tasks, CountReady()) == 5


def test_a_take_whose_reply_is_lost_and_whose_repeat_is_refused_is_undone(binding, monkeypatch):
    ask(binding, Put([b"1"]))
    session = binding.session()
    with monkeypatch.context() as patch:

        async def refused(execute, this, *args):
            raise BrokerError("the login is refused")

        async def breaking(execute, this, *args):
            await execute(this, *args)
            this.close()
            patch.setattr(wire.Wire, "execute", refused)
            raise errors.ConnectionLost("it broke")

        execute_by(patch, breaking)
        with pytest.raises(BrokerError, match="refused"):
            session.call(Take())
    session.interrupted()
    taken = session.taken
    session.end()
    assert ask(binding, GetLength()) == 0
    assert ask(binding, taken) is Outcome.DONE
    assert ask(binding, Take()) == Taken([b"1"])
