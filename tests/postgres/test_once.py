"""What is sent again, since its connection broke, is done once."""

from __future__ import annotations

import pytest
from sessions import Looped, ask, bind

from pressure_mp.engines.contract.items import Acknowledge, Added, Hold, Put, Take, Taken
from pressure_mp.engines.contract.queues import CountDone, GetLength, GetStats, How, Open
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.engines.contract.tasks import OpenTasks, PutTasks
from pressure_mp.sync.tasks import settings

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


class Breaking:
    """From now on: so many connections break when the next statements were sent, and done."""

    def __init__(self, patch, times):
        from pressure_mp.engines.postgres import wire

        self.left, self.errors = times, []
        execute = wire.Wire.execute

        async def executed(this, *args):
            rows = await execute(this, *args)
            if self.left:
                self.left -= 1
                this.close()
                raise wire.ConnectionLost("it broke")
            return rows

        patch.setattr(wire.Wire, "execute", executed)


@pytest.mark.parametrize("times", [1, 2])
def test_a_put_and_a_take_are_done_once(session, binding, monkeypatch, times):
    breaking = Breaking(monkeypatch, times)
    assert session.call(Put([b"1", b"2"])) == Added(2)
    breaking.left = times
    assert session.call(Take(2)) == Taken([b"1", b"2"])
    assert not breaking.left
    stats = ask(binding, GetStats())
    assert (stats.length, stats.produced_messages, stats.consumed_messages) == (0, 2, 2)


def test_what_counts_is_counted_once(session, binding, monkeypatch):
    ask(binding, Put([b"1", b"2"]))
    taken = ask(binding, Take(2, Hold(OWNER, 1)))
    breaking = Breaking(monkeypatch, 1)
    assert session.call(Acknowledge(OWNER, taken.numbers[0])) is Outcome.DONE
    breaking.left = 1
    assert session.call(CountDone()) is Outcome.DONE
    assert not breaking.left
    assert ask(binding, GetStats()).unfinished == 0


def test_tasks_are_put_once(postgres, name, monkeypatch):
    tasks = bind(postgres.limited_url, name, "tasks")
    chosen = {"ttr": 60, "ttl": None, "zombie": None, "keep": False, "max_deliveries": None}
    ask(tasks, OpenTasks(How.CREATE, settings.make(**chosen, id="auto_increment")))
    Breaking(monkeypatch, 1)
    assert ask(tasks, PutTasks([(b"", b"data")], "auto_increment")) == [b"1"]
    assert ask(tasks, PutTasks([(b"", b"data")], "auto_increment")) == [b"2"]


def test_a_call_that_arrives_after_its_repeat_does_nothing(binding, monkeypatch):
    """The first connection was silent, and what was sent over it comes late."""
    from pressure_mp.engines.postgres import errors, wire

    sent = []
    execute = wire.Wire.execute

    async def executed(this, *args):
        if not sent:
            sent.append((this, args))
            raise errors.ConnectionLost("it is silent")
        return await execute(this, *args)

    session = binding.session()
    monkeypatch.setattr(wire.Wire, "execute", executed)
    assert session.call(Put([b"1"])) == Added(1)
    session.end()
    wire_, args = sent[0]
    with pytest.raises(errors.MadeBefore):
        wire.finish(execute(wire_, *args))
    assert ask(binding, GetLength()) == 1


def test_a_take_that_was_taken_back_before_it_arrived_takes_nothing(binding, monkeypatch):
    from pressure_mp.engines.postgres import errors, wire

    ask(binding, Put([b"1"]))
    sent = []
    execute = wire.Wire.execute

    async def executed(this, *args):
        if not sent:
            sent.append((this, args))
            raise KeyboardInterrupt
        return await execute(this, *args)

    session = binding.session()
    monkeypatch.setattr(wire.Wire, "execute", executed)
    monkeypatch.setattr(wire.Wire, "close", lambda this: None)
    with pytest.raises(KeyboardInterrupt):
        session.call(Take())
    session.interrupted()
    taken = session.taken
    session.end()
    assert ask(binding, taken) is Outcome.DONE
    wire_, args = sent[0]
    with pytest.raises(errors.MadeBefore):
        wire.finish(execute(wire_, *args))
    assert ask(binding, GetLength()) == 1


def test_what_was_taken_goes_back_to_its_place_once(binding):
    ask(binding, Put([b"1", b"2", b"3"]))
    session = binding.session()
    assert session.call(Take(2)) == Taken([b"1", b"2"])
    for _ in range(2):
        assert ask(binding, session.taken) is Outcome.DONE
    session.end()
    assert ask(binding, Take(3)) == Taken([b"1", b"2", b"3"])
    assert ask(binding, GetStats()).consumed_messages == 3
