"""Ordinary calls go a fast path through the scripts; all others have their effect all the same."""

from __future__ import annotations

import threading
import time

import pytest
from brokers.lossy import LossyProxy
from exchanges import Exchanges
from tasks.pair import Pair, ask, each_checked
from waiting import LIMIT, Background, blocked, until

from pressure_mp import Empty, NotTaken, TaskExists, TaskQueue
from pressure_mp.engines.contract.replies import NoTask
from pressure_mp.engines.contract.task_records import Edit
from pressure_mp.engines.contract.tasks import AckTask, CloseTasks, PutTasks, TakeTasks
from pressure_mp.engines.redis.commands import Command

ME, OTHER = "host/1/1/aaaaaaaa", "host/2/2/bbbbbbbb"
LATE = 3_600_000
#: Longer than one millisecond, after which all is due that is due soon.
PAUSE = 0.004


class Tasks(Pair):
    """A queue of tasks that one process uses."""

    def __init__(self, url, **options):
        super().__init__(url)
        self.create(**options)

    def put(self, *ids, **options):
        tasks = [(id, b"data") for id in ids or (b"",)]
        return self.ask(PutTasks(tasks, "auto_increment", **options))

    def take(self, limit=1, tube="", ttr=None, call=1, owner=ME):
        return self.ask(TakeTasks(owner, call, limit, tube, ttr, waits=False))

    def take_next(self, id=b"1", fence=1, owner=ME, call=2, **options):
        """Acknowledge a task and take the next."""
        return super().take_next(id, fence, owner, call, **options)

    def ack(self, id=b"1", owner=ME, call=1, **options):
        return self.ask(AckTask(id, owner, call, **options))


@pytest.fixture
def make(server):
    """Makes the queues of a test, which are deleted at its end."""
    with each_checked(Tasks, server.url) as making:
        yield making


def looks(client):
    """How often scripts looked through a sorted set so far. The long way begins with two looks."""
    return client.info("commandstats").get("cmdstat_zrange", {"calls": 0})["calls"]


def ordinary_put(tasks):
    tasks.put()


def ordinary_take(tasks):
    tasks.take()


def ordinary_ack(tasks):
    tasks.ack()


def ordinary_next(tasks):
    tasks.take_next(b"2")


def prepared(tasks):
    """A task is taken, and another is ready."""
    tasks.put()
    tasks.take()
    tasks.put()
    return tasks


@pytest.mark.parametrize(
    "options", [{}, {"ttr": None}, {"max_deliveries": 1}, {"id": "time64"}], ids=str
)
def test_ordinary_calls_take_the_fast_path(options, own_server):
    tasks = prepared(Tasks(own_server.url, **options))
    with own_server.client() as client:
        ways = (ordinary_put, 0), (ordinary_take, 1), (ordinary_ack, 0), (ordinary_next, 1)
        for call, most in ways:
            before = looks(client)
            call(tasks)
            assert looks(client) - before == most, call


def become_due(tasks):
    """A task is due at once, before all that are ready."""
    tasks.put(b"due", delay=1, priority=-1)
    time.sleep(PAUSE)


def shut_down(tasks):
    tasks.ask(CloseTasks())


def put_first(**options):
    """A task is put before all that are ready."""
    return lambda tasks: tasks.put(b"3", priority=-1, **options)


def take_for_a_moment(tasks):
    tasks.take(call=2, ttr=1)


def pause(tasks):
    time.sleep(PAUSE)


def take_second(tasks):
    tasks.take(call=2)


def next_after_that(tasks):
    tasks.take_next(b"3", fence=2, call=3)


def put_one(tasks):
    tasks.put()


#: The steps of each case; the last step is out of the ordinary.
CASES = {
    "put into a queue that is shut down": (shut_down, put_one),
    "put of an id that is there": (lambda tasks: tasks.put(b"2"),),
    "put of many": (lambda tasks: tasks.put(b"", b"", b"x"),),
    "put with a delay": (lambda tasks: tasks.put(delay=LATE),),
    "put with a ttl": (lambda tasks: tasks.put(ttl=LATE),),
    "put into a tube": (lambda tasks: tasks.put(tube="a"),),
    "put that waits for its task": (lambda tasks: tasks.put(awaited=True),),
    "take while a task is due": (become_due, take_second),
    "take of many": (lambda tasks: tasks.take(limit=2, call=2),),
    "take from a tube": (lambda tasks: tasks.take(tube="a", call=2),),
    "take of a task in a tube": (put_first(tube="a"), take_second),
    "take of a task with a ttl": (put_first(ttl=LATE), take_second),
    "take of a task whose ttl is over": (put_first(ttl=1), pause, take_second),
    "take for a moment": (lambda tasks: tasks.take(call=2, ttr=500),),
    "take when none is ready": (take_second, take_second),
    "take of a task that lapsed": (take_for_a_moment, pause, take_second),
    "ack of a task that is not there": (lambda tasks: tasks.ack(b"x"),),
    "ack of a task that is ready": (lambda tasks: tasks.ack(b"2"),),
    "ack of another process": (lambda tasks: tasks.ack(owner=OTHER),),
    "ack of another take": (lambda tasks: tasks.ack(call=2),),
    "ack with a zombie time": (lambda tasks: tasks.ack(delay=LATE),),
    "ack into a tube": (lambda tasks: tasks.ack(tube="a"),),
    "ack in a tube": (put_first(tube="a"), take_second, lambda tasks: tasks.ack(b"3", call=2)),
    "ack of data that was changed": (lambda tasks: tasks.ack(edit=Edit(b"new", b"old")),),
    "ack that answers the data": (lambda tasks: tasks.ack(whole=True),),
    "ack of a task that lapsed": (take_for_a_moment, pause, lambda tasks: tasks.ack(b"2", call=2)),
    "ack while a call waits for a task": (
        put_first(awaited=True),
        take_second,
        lambda tasks: tasks.ack(b"3", call=2),
    ),
    "next after a task that is not there": (lambda tasks: tasks.take_next(b"x"),),
    "next after a task that is ready": (lambda tasks: tasks.take_next(b"2"),),
    "next after a task of another process": (lambda tasks: tasks.take_next(owner=OTHER),),
    "next after a task of another take": (lambda tasks: tasks.take_next(fence=2),),
    "next after a task in a tube": (put_first(tube="a"), take_second, next_after_that),
    "next after a task that lapsed": (take_for_a_moment, pause, next_after_that),
    "next while a call waits for a task": (
        put_first(awaited=True),
        take_second,
        next_after_that,
    ),
    "next when none is ready": (take_second, lambda tasks: tasks.take_next(call=3)),
    "next while a task is due": (become_due, lambda tasks: tasks.take_next()),
    "next is a task in a tube": (put_first(tube="a"), lambda tasks: tasks.take_next()),
    "next is a task with a ttl": (put_first(ttl=LATE), lambda tasks: tasks.take_next()),
    "next for a moment": (lambda tasks: tasks.take_next(ttr=500),),
    "next is of a tube": (put_first(tube="a"), lambda tasks: tasks.take_next(tube="a")),
    "next are many": (ordinary_put, lambda tasks: tasks.take_next(limit=2)),
}
#: Queues of which every put is out of the ordinary, or every ack.
QUEUES = {"ttl": {"ttl": 3600}, "zombie": {"zombie": 3600}, "keep": {"keep": True}}


@pytest.mark.parametrize("case", CASES)
def test_a_call_that_is_not_ordinary_has_its_effect_too(case, make, server):
    *before, call = CASES[case]
    tasks = prepared(make())
    for step in before:
        step(tasks)
    with server.client() as client:
        looked = looks(client)
        call(tasks)
        assert looks(client) - looked > 1
    tasks.check()


def test_a_put_that_waits_for_its_task_is_told_of_an_ordinary_ack(server, name):
    queue = TaskQueue(name, url=server.url)
    putting = Background(queue.put, 1, wait=LIMIT)
    queue.take().ack()
    _, was_processed = putting.result()
    assert was_processed
    queue.delete()


@pytest.mark.usefixtures("no_looks")  # which go over the same server
@pytest.mark.parametrize("call", [ordinary_put, ordinary_ack])
def test_an_ordinary_put_and_ack_need_not_look_for_due_tasks(call, make, server):
    tasks = prepared(make())
    become_due(tasks)
    with server.client() as client:
        looked = looks(client)
        call(tasks)
        assert looks(client) == looked
    tasks.check()


@pytest.mark.parametrize("options", QUEUES.values(), ids=QUEUES.keys())
def test_the_queue_makes_calls_out_of_the_ordinary(options, make):
    tasks = prepared(make(**options))
    tasks.check()
    tasks.ack()
    tasks.check()
    tasks.take(call=2)
    tasks.ack(b"2", call=2)


def test_nothing_stays_of_what_a_waiter_was_woken_with(server, name):
    queue = TaskQueue(name, url=server.url)
    with server.client() as client:
        before = blocked(client)
        taking = Background(queue.take)
        until(lambda: blocked(client) == before + 1)
        queue.put(1)
        assert taking.result().data == 1
        assert not client.exists(f"__pressure__:mp:{{{name}}}:woken")
    queue.delete()


def test_a_worker_makes_one_call_for_each_task_that_is_ready(server, name, monkeypatch):
    queue = TaskQueue(name, url=server.url)
    queue.put_many("ab")
    queue.ack_many([queue.take(ack=queue.take())])  # the server has the scripts from now on
    queue.put_many(range(20))
    calls, stop = Exchanges(monkeypatch, queue), threading.Event()

    def handle(task):
        if task.data == 19:
            stop.set()

    queue.run(handle, stop=stop)
    made = [op for op in calls.ops if op in ("take", "next", "ack", "ack_one", "ack_many")]
    assert made == ["take", *["next"] * 19, "ack_many"]
    assert queue.stats().transitions == {"X-R": 22, "R-T": 22, "T-X": 22}
    queue.delete()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_next_whose_reply_is_lost_is_done_once(is_there, server, name):
    proxy = LossyProxy(server.port)
    try:
        with TaskQueue(name, url=proxy.url) as queue:
            queue.put_many(range(1 + is_there))
            first = queue.take()
            proxy.lose()
            if is_there:
                assert queue.take(0, ack=first).data == 1
            else:
                with pytest.raises(Empty):
                    queue.take(0, ack=first)
            assert (proxy.lost, first.state, first.due) == (1, "X", None)
            assert queue.stats().counts["T"] == is_there
            assert queue.stats().transitions["T-X"] == 1
            queue.delete()
    finally:
        proxy.stop()


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("still", [True, False])
def test_a_take_whose_reply_is_lost_gives_what_it_took_if_that_is_still_taken(
    number, still, server, name, monkeypatch
):
    proxy = LossyProxy(server.port)
    try:
        with TaskQueue(name, url=proxy.url) as queue:
            ids = queue.put_many(range(5))
            lost = []

            def take_away(command, *args):
                """The first of the tasks, before the take asks again."""
                if command.script.name == "read_take" and not lost and not still:
                    lost.append(queue.snatch(ids[0], delay=60))
                return pack(command, *args)

            pack = Command.pack
            monkeypatch.setattr(Command, "pack", take_away)
            proxy.lose()
            tasks = queue.take_many(number)
            gone = 0 if still else 1
            first = gone if number > 1 or still else 1
            assert [task.data for task in tasks] == list(range(first, max(number, first + 1)))
            assert (proxy.lost, queue.stats().counts["T"]) == (1, len(tasks))
            queue.delete()
    finally:
        proxy.stop()


#: A task beside the task that is taken, and whether another take should look at it soon.
BESIDE = {
    "nothing": (None, False),
    "one that is ready": (0, True),
    "one that is due within a second": (500, True),
    "one that is due later": (60_000, False),
}


@pytest.mark.parametrize("tube", ["", "a"])  # the fast path, and the other
@pytest.mark.parametrize("beside", BESIDE)
def test_a_take_that_was_woken_wakes_another_if_there_are_more_tasks_to_look_at(
    beside, tube, server
):
    options, wakes = BESIDE[beside]
    tasks = Tasks(server.url)
    binding = tasks.bindings[0]
    waiting = binding.session()
    assert isinstance(waiting.call(TakeTasks(ME, 1)), NoTask)
    ask(binding, PutTasks([(b"", b"data")], "time64", tube=tube))
    if options is not None:
        ask(binding, PutTasks([(b"", b"data")], "time64", delay=options))
    with server.client() as client:
        wake = f"__pressure__:mp:{{{tasks.name}}}:wake"
        client.delete(wake)
        assert len(waiting.call(TakeTasks(ME, 2)).tasks) == 1
        waiting.end()
        assert client.llen(wake) == wakes
    tasks.delete()


#: Options of the queue and of a put, and whether the task has a record from the beginning.
PUTS = {
    "an ordinary put": ({}, {}, False),
    "a priority": ({}, {"priority": 1}, True),
    "a tube": ({}, {"tube": "a"}, True),
    "a delay": ({}, {"delay": 60}, True),
    "a ttl": ({}, {"ttl": 60}, True),
    "the queue's ttl": ({"ttl": 60}, {}, True),
    "an id": ({}, {"id": 7}, True),
    "another kind of ids": ({"id": "auto_increment"}, {}, True),
}


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("put", PUTS)
def test_usual_options_of_a_task_are_not_written_down_until_they_change(put, number, server, name):
    options, how, is_written = PUTS[put]
    how = dict(how)
    queue = TaskQueue(name, url=server.url, **options)
    records = f"__pressure__:mp:{{{name}}}:records"
    before = time.time() - 60  # the clocks are the same; a machine may set its own meanwhile
    if number == 1:
        ids = [queue.put("data", **how)]
    else:
        given = {"ids": [how.pop("id"), 8]} if "id" in how else {}
        ids = queue.put_many(["data"] * number, **how, **given)
    with server.client() as client:
        assert client.hlen(records) == (number if is_written else 0)
        task = queue.peek(ids[-1])
        assert (task.state, task.priority) == (
            "W" if "delay" in how else "R",
            how.get("priority", 0),
        )
        assert (task.tube, task.deliveries, task.error) == (how.get("tube"), 0, None)
        assert before < task.created == task.since < before + 120
        queue.move(ids[0], "elsewhere")
        assert client.hlen(records) == (number if is_written else 1)
        assert queue.peek(ids[0]).tube == "elsewhere"
        assert sorted(task.id for task in queue.list()) == sorted(ids)
    queue.delete()


@pytest.mark.parametrize("number", [1, 2])
def test_the_id_of_a_task_without_a_record_is_taken_too(number, server, name):
    queue = TaskQueue(name, url=server.url)
    id = queue.put("data")
    with pytest.raises(TaskExists):
        queue.put_many(["data"] * number, ids=[id, "other"][:number])
    with pytest.raises(NotTaken):
        queue.ack(id)
    with pytest.raises(NotTaken):
        queue.ack_many([id])
    queue.kill(id)
    queue.put("data", id=id)
    assert queue.take(0).id == id
    queue.delete()
