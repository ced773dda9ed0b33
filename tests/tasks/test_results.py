"""Results of tasks are kept if the put asked for it, and told to the calls that wait for them."""

from __future__ import annotations

import multiprocessing
import threading

import inside
import pytest
from waiting import Background, parks, until

from pressure_mp import (
    AuthenticationError,
    DecodingError,
    EncodingError,
    InboxLost,
    NotOwner,
    NotTaken,
    QueueDoesNotExistError,
    RemoteTraceback,
    ResultNotKept,
    ResultTimeout,
    TaskFailed,
    TaskNotFound,
    TaskQueue,
    TaskResult,
)
from pressure_mp.engines.contract.task_results import WITH_INBOX, Result
from pressure_mp.engines.contract.tasks import AckTasks


def put_and_take(queue, data="data", **options):
    """The id of a task that was put, and it as its taker has it."""
    id = queue.put(data, result_ttl=60, **options)
    task = queue.take(0)
    assert task.id == id
    return id, task


def waits(call, *args, **options):
    """A call that waits."""
    waiting = Background(call, *args, **options)
    until(lambda: parks(waiting))
    return waiting


class Custom(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")
        self.one = one


@pytest.mark.usefixtures("no_ticks")
def test_waiting_and_later_calls_get_the_result_that_the_taker_gave(queue):
    id, task = put_and_take(queue)
    assert task.result_ttl == 60
    waiting = [waits(queue.result, id) for _ in range(2)]
    task.ack(result={"a": 1})
    assert [one.result() for one in waiting] == [{"a": 1}] * 2
    assert queue.result(id) == {"a": 1}, "it can be read again"


@pytest.mark.parametrize("kept", [{}, {"keep": True}, {"zombie": 3600}])
def test_a_result_is_kept_whatever_becomes_of_the_task(url, name, kept):
    queue = TaskQueue(name, url=url, **kept)
    id, task = put_and_take(queue)
    task.result = "set"
    next_id = queue.put("next", result_ttl=60)
    queue.take(0, ack=task).ack()
    assert queue.result(id) == "set"
    assert queue.result(next_id) is None, "nothing was said"
    queue.delete()


@pytest.mark.parametrize("how", ["zombie", "kill", "kill a buried one"])
def test_the_result_of_a_task_stays_when_the_task_goes_later(url, name, how):
    queue = TaskQueue(name, url=url, zombie=0.02 if how == "zombie" else 3600)
    with queue.inbox() as inbox:
        id, task = put_and_take(queue, inbox=inbox)
        if how == "kill a buried one":
            task.bury(error=KeyError("bad"))
        else:
            task.ack(result=1)
        if how == "zombie":
            until(lambda: not queue.list())
        else:
            queue.kill(id)
        assert [event.event for event in inbox.take(0)] == [
            *("taken", "buried" if how == "kill a buried one" else "processed")
        ]
    if how == "kill a buried one":
        with pytest.raises(KeyError):
            queue.result(id)
    else:
        assert queue.result(id) == 1
    queue.delete()


def test_tasks_that_are_acknowledged_together_have_their_results(queue):
    ids = queue.put_many(range(4), result_ttl=60)
    queue.put("nobody asks")
    tasks = queue.take_many(5)
    for task in tasks[1:3]:
        task.result = task.data
    tasks[3].result = bytes(300_000)
    queue.snatch(ids[2])
    with pytest.raises(NotTaken) as raised:
        queue.ack_many(tasks)
    assert (raised.value.accepted, raised.value.rest) == (4, [tasks[2]])
    queue.take(0).ack()
    assert [queue.result(id) for id in ids] == [None, 1, None, bytes(300_000)]
    assert queue.list() == []


def test_results_of_many_tasks_are_told_in_one_request(queue):
    queue.put_many(range(3), result_ttl=60)
    tasks = queue.take_many(3)
    for task in tasks:
        task.result = task.data
    acking = queue._at.acking_many(tasks)
    request = next(acking)
    assert isinstance(request, AckTasks)
    assert [place for place, _ in request.results] == [0, 1, 2]
    acking.close()
    queue.ack_many(tasks)


def test_a_result_that_cannot_be_encoded_leaves_its_task_taken(queue):
    queue.put_many(range(2), result_ttl=60)
    tasks = queue.take_many(2)
    tasks[0].result = threading.Lock()
    with pytest.raises(EncodingError) as raised:
        queue.ack_many(tasks)
    assert (raised.value.rest, tasks[1].state) == ([tasks[0]], "X")
    tasks[0].ack(result=None)


def test_an_authentication_error_names_the_data_or_result_and_what_became_of_it(url, name):
    signed = TaskQueue.create(name, url=url, authkey=b"one")
    other = TaskQueue.attach(name, url=url, authkey=b"another")
    id = signed.put("data", result_ttl=60)
    with pytest.raises(AuthenticationError, match=r"the data of a task .* buries the task"):
        other.take(0)
    assert [task.state for task in signed.list("buried")] == ["B"]
    signed.kick(id)
    signed.take(0).ack(result=1)
    with pytest.raises(AuthenticationError, match=r"the result of a task .* it stays until"):
        other.result(id)
    assert signed.result(id) == 1
    signed.delete()


def test_no_result_is_kept_of_a_task_that_was_put_without_result_ttl(queue):
    id = queue.put("data")
    with pytest.raises(ResultNotKept, match="without result_ttl"):
        queue.result(id)
    task = queue.take(0)
    assert task.result_ttl is None
    task.ack(result=threading.Lock())  # it is not even encoded
    with pytest.raises(TaskNotFound):
        queue.result(id)


def test_a_result_that_cannot_be_encoded_leaves_the_task_with_its_taker(queue):
    id, task = put_and_take(queue)
    with pytest.raises(EncodingError):
        task.ack(result=threading.Lock())
    task.ack(result=1)
    assert queue.result(id) == 1


def test_the_end_of_a_pipe_is_no_result(queue):
    id, task = put_and_take(queue)
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs, pytest.raises(EncodingError, match="end of a pipe"):
        task.ack(result=[theirs])
    task.ack(result=1)
    assert queue.result(id) == 1


def test_an_error_is_raised_where_the_result_is_asked_for_with_its_traceback(queue):
    id, task = put_and_take(queue)
    task.on_error = "bury"
    with pytest.raises(ZeroDivisionError), task:
        1 // 0  # noqa: B018
    with pytest.raises(ZeroDivisionError) as raised:
        queue.result(id)
    assert isinstance(raised.value.__cause__, RemoteTraceback)
    assert "1 // 0" in str(raised.value.__cause__)
    assert queue.peek(id).error.startswith("ZeroDivisionError: ")
    # It is processed after all.
    queue.kick(id)
    with pytest.raises(ResultTimeout, match="still ready after 0 s"):
        queue.result(id, 0)
    queue.take(0).ack(result="now")
    assert queue.result(id) == "now"


def test_an_error_that_cannot_be_encoded_and_decoded_is_told_in_words(queue):
    id, task = put_and_take(queue)
    task.bury(error=Custom("one", "two"))  # which cannot be unpickled
    with pytest.raises(TaskFailed, match="one and two"):
        queue.result(id)


class Unknown(Exception):
    pass


@pytest.mark.parametrize("size", [1, 300_000])
def test_a_result_or_error_that_cannot_be_decoded_here_is_an_error(name, monkeypatch, size):
    queue = TaskQueue(name, url=f"memory://{name}")
    id, task = put_and_take(queue)
    other, failed = put_and_take(queue)
    task.ack(result=Unknown(bytes(size)))
    failed.bury(error=Unknown("why"))
    monkeypatch.delattr(f"{__name__}.Unknown")
    with pytest.raises(
        DecodingError, match=r"the result of a task .* cannot be decoded .AttributeError"
    ):
        queue.result(id)
    with pytest.raises(TaskFailed, match="Unknown: why"):
        queue.result(other)
    assert [type(one.error) for one in queue.results([id, other])] == [DecodingError, TaskFailed]


class Frozen(Exception):
    """An exception whose attributes cannot be set, as a frozen dataclass."""

    def __setattr__(self, name, value):
        raise AttributeError("this one is frozen")


class Mute(Exception):
    """One that cannot be shown."""

    def __str__(self):
        raise RuntimeError("this one is mute")


@pytest.mark.parametrize("kind", [Frozen, Mute])
def test_an_error_whose_own_methods_raise_is_the_result_of_its_task(url, name, kind):
    queue = TaskQueue(name, url=url)
    id, task = put_and_take(queue)
    task.bury(error=kind())
    with pytest.raises(kind) as caught:
        queue.result(id)
    assert isinstance(caught.value.__cause__, RemoteTraceback)
    queue.delete()


def test_the_error_counts_only_when_the_task_is_given_up(url, name):
    queue = TaskQueue(name, url=url, max_deliveries=2)
    id, task = put_and_take(queue)
    task.release(error=KeyError("first"))
    with pytest.raises(ResultTimeout):
        queue.result(id, 0)
    queue.take(0).release(error=KeyError("second"))
    with pytest.raises(KeyError, match="second"):
        queue.result(id)
    queue.delete()


@pytest.mark.parametrize(("how", "why"), [("kill", "killed"), ("drop", "dropped"), ("bury", "why")])
def test_a_task_that_ends_without_a_result_has_failed(how, why, queue):
    id, task = put_and_take(queue)
    waiting = waits(queue.result, id)
    if how == "kill":
        queue.kill(id)
    elif how == "drop":
        task.release(ttl=0.01)
    else:
        task.bury(error="why")
    for raising in (waiting.result, lambda: queue.result(id)):
        with pytest.raises(TaskFailed, match=why) as raised:
            raising()
        assert raised.value.task_id == id


def test_a_result_goes_when_its_time_is_up(queue):
    id = queue.put("data", result_ttl=0.05)
    queue.take(0).ack(result=1)

    def is_gone():
        try:
            queue.result(id)
        except TaskNotFound:
            return True
        return False

    until(is_gone)


def test_the_result_of_another_task_that_had_the_id_does_not_count(queue):
    put_and_take(queue, id="same")[1].ack(result="old")
    id, task = put_and_take(queue, id="same")
    with pytest.raises(ResultTimeout):
        queue.result(id, 0)
    task.ack()
    assert queue.result(id) is None


def test_a_taker_that_has_lost_its_task_cannot_give_its_result(queue):
    id, late = put_and_take(queue)
    queue.snatch(id)
    for acknowledging in (lambda: late.ack(result="late"), lambda: queue.take(0, ack=late)):
        with pytest.raises(NotTaken):
            acknowledging()
    task = queue.take(0)
    with pytest.raises(NotOwner):
        late.ack(result="late")
    task.ack(result="good")
    assert queue.result(id) == "good"


def test_the_results_of_many_come_as_they_are_done(queue):
    ids = queue.put_many(range(5), result_ttl=60)
    tasks = queue.take_many(5)
    tasks[3].ack(result=3)
    tasks[1].bury(error=KeyError("one"))
    queue.kill(ids[2])
    gone = "never there"
    results = queue.results([*ids, ids[0], gone])
    first = [next(results) for _ in range(4)]
    assert [(one.id, one.outcome) for one in first] == [
        *((ids[1], "buried"), (ids[2], "killed"), (ids[3], "processed"), (gone, ""))
    ]
    assert first[2].get() == 3
    for place, error in ((0, KeyError), (1, TaskFailed), (3, TaskNotFound)):
        with pytest.raises(error):
            first[place].get()
    tasks[4].ack()
    assert next(results) == TaskResult(ids[4], "processed", None)
    waiting = waits(next, results)
    tasks[0].ack(result=0)
    assert waiting.result() == TaskResult(ids[0], "processed", 0)
    assert list(results) == []
    with pytest.raises(ResultTimeout, match=r"1 of 1 tasks .* after 0 s"):
        next(queue.results([queue.put("never taken", result_ttl=60)], 0))


def test_waiting_calls_are_told_of_a_deletion(queue):
    id = queue.put("data", result_ttl=60)
    waiting = [waits(queue.result, id), waits(list, queue.results([id]))]
    queue.delete()
    for one in waiting:
        with pytest.raises(QueueDoesNotExistError):
            one.result()


@pytest.mark.usefixtures("no_ticks")
def test_an_inbox_hears_of_tasks_that_are_put_with_it(queue):
    with queue.inbox() as inbox:
        waiting = waits(inbox.take)
        ids = queue.put_many(range(3), inbox=inbox)
        (first, _) = queue.take_many(2)
        events = waiting.result()
        events += inbox.take() if len(events) == 1 else []
        assert [(event.id, event.event, event.deliveries) for event in events] == [
            *((ids[0], "taken", 1), (ids[1], "taken", 1))
        ]
        waiting = waits(inbox.take)
        first.ack(result="done")
        assert waiting.result() == [
            (ids[0], "processed", 1, TaskResult(ids[0], "processed", "done"), None)
        ]
        assert queue.result(ids[0]) == "done", "the inbox has not said that it saw it"
        assert inbox.take(0) == []
        with pytest.raises(TaskNotFound):  # it was for the inbox alone
            queue.result(ids[0])
        queue.release(ids[1])
        queue.take(0)
        assert inbox.take() == [(ids[1], "taken", 2, None, None)]
        assert queue.peek(ids[2]).record.result_ttl == WITH_INBOX


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_waiting_inbox_gets_one_event_of_a_task_whose_taker_takes_the_next(queue, size):
    with queue.inbox(takes=False) as inbox:
        ids = queue.put_many(range(3), inbox=inbox)
        task = queue.take(0)
        for id in ids[:2]:
            waiting = waits(inbox.take)
            task.result = bytes(size)
            task = queue.take(0, ack=task)
            assert waiting.result() == [
                (id, "processed", 1, TaskResult(id, "processed", bytes(size)), None)
            ]
        assert inbox.take(0) == []
        with pytest.raises(TaskNotFound):  # the inbox said that it saw it
            queue.result(ids[1])


def test_each_inbox_hears_of_its_own_tasks_when_one_call_ends_a_task_and_takes_the_next(queue):
    with queue.inbox() as first, queue.inbox() as second:
        inboxes = [first, first, second, second, first]
        ids = [queue.put("data", inbox=inbox) for inbox in inboxes]
        task = None
        for _ in ids:
            task = queue.take(0, ack=task)
        task.ack()
        for inbox in (first, second):
            expected = [
                (id, event)
                for id, own in zip(ids, inboxes, strict=True)
                for event in ("taken", "processed")
                if own is inbox
            ]
            assert [(one.id, one.event) for one in inbox.take(0)] == expected


def test_an_inbox_without_takes_hears_only_that_tasks_end(queue):
    with queue.inbox(takes=False) as inbox:
        id = queue.put("data", inbox=inbox)
        task = queue.take(0)
        inbox.watch([id])
        task.release()
        queue.take(0).ack()
        assert [(one.event, one.deliveries) for one in inbox.take(0)] == [("processed", 2)]


def test_a_result_that_is_kept_for_a_time_stays_when_an_inbox_has_seen_it(queue):
    with queue.inbox() as inbox:
        id = queue.put("data", inbox=inbox, result_ttl=60)
        queue.take(0).ack(result=1)
        assert len(inbox.take(0)) == 2
        assert inbox.take(0) == []
    assert queue.result(id) == 1


def test_an_inbox_that_is_gone_takes_along_what_was_kept_for_it_alone(queue):
    with queue.inbox() as inbox:
        early, late = queue.put_many(range(2), inbox=inbox)
        queue.take(0).ack(result=1)
    queue.take(0).ack(result=2)
    for id in (early, late):
        with pytest.raises(TaskNotFound):
            queue.result(id)


def test_an_inbox_that_was_not_asked_for_longer_than_its_lease_is_lost_and_can_go_on(queue):
    inbox = queue.inbox(lease=1)
    id = queue.put("data", inbox=inbox, result_ttl=60)
    until(lambda: has_no_inbox(queue, inbox))
    queue.take(0).ack(result=1)
    with pytest.raises(InboxLost, match="longer than its lease of 1 s"):
        inbox.take()
    inbox.watch([id])
    assert inbox.take() == [(id, "processed", 0, TaskResult(id, "processed", 1), None)]
    # It is told so too when it first watches others.
    until(lambda: has_no_inbox(queue, inbox))
    inbox.watch([id])
    with pytest.raises(InboxLost):
        inbox.take()
    assert [event.id for event in inbox.take()] == [id]


def has_no_inbox(queue, inbox):
    """Whether an inbox is gone; to ask for that does not keep it."""
    probe = queue.inbox()
    id = queue.put("probe", inbox=inbox)
    queue.kill(id)
    probe.watch([id])
    (event,) = probe.take(0)
    probe.close()
    return event.event == "absent"


def test_each_inbox_that_watches_a_task_hears_of_it(queue):
    id, task = put_and_take(queue)
    inboxes = [queue.inbox() for _ in range(2)]
    for inbox in inboxes:
        inbox.watch([id])
        assert inbox.take(0) == [(id, "taken", 1, None, None)]
    task.ack(result=5)
    for inbox in inboxes:
        (event,) = inbox.take(0)
        assert event.result.get() == 5


def test_the_results_of_a_signed_queue_are_signed_each_for_its_task(url, name):
    queue = TaskQueue(name, url=url, authkey=b"key")
    id, task = put_and_take(queue)
    other, wrong = put_and_take(queue)
    task.ack(result="good")
    wrong.bury(error=KeyError("bad"))
    assert queue.result(id) == "good"
    with pytest.raises(KeyError):
        queue.result(other)
    with pytest.raises(AuthenticationError):
        TaskQueue.attach(name, url=url).result(id)
    queue.delete()


@pytest.mark.parametrize("size", [1, 300_000])
def test_a_result_that_was_moved_to_another_task_is_refused(name, size):
    queue = TaskQueue(name, url=f"memory://{name}", authkey=b"key")
    id, task = put_and_take(queue)
    other, another = put_and_take(queue)
    task.ack(result=bytes(size))
    another.ack(result=1)
    there = inside.memory_results(queue)
    there[b"%d" % other] = there[b"%d" % id]
    with pytest.raises(DecodingError, match="is not a result of that task"):
        queue.result(other)
    moved = there[b"%d" % id]
    moved.result = Result(inside.memory_data(queue, queue.put("data")))
    with pytest.raises(DecodingError, match="is not a result of that task"):
        queue.result(id)


@pytest.mark.parametrize("authkey", [None, b"key"])
def test_a_large_result_is_kept_apart_for_as_long_as_the_result(url, name, authkey):
    queue = TaskQueue(name, url=url, authkey=authkey)
    large = bytearray(range(256)) * 10_000
    id, task = put_and_take(queue)
    last, acked = put_and_take(queue)
    task.ack(result=large)
    acked.result = large[1:]
    queue.put("next")
    queue.take(0, ack=acked)
    assert queue.result(id) == large
    assert [one.get() for one in queue.results([id, last])] == [large, large[1:]]
    with queue.inbox() as inbox:
        queue.put("data", inbox=inbox)
        queue.take(0).ack(result=large)
        assert inbox.take(0)[-1].result.get() == large
    queue.delete()


@pytest.mark.parametrize("serializer", ["json", "raw"])
def test_results_are_made_by_the_serializer_and_errors_told_in_words(url, name, serializer):
    queue = TaskQueue(name, url=url, serializer=serializer)
    value = b"bytes" if serializer == "raw" else {"a": [1]}
    id, task = put_and_take(queue, value)
    other, wrong = put_and_take(queue, value)
    task.ack(result=value)
    wrong.bury(error=KeyError("bad"))
    assert queue.result(id) == value
    with pytest.raises(TaskFailed, match="KeyError: 'bad'"):
        queue.result(other)
    queue.delete()


def test_handlers_return_results(queue):
    stop = threading.Event()

    def handle(task):
        if task.data == "ends":
            stop.set()
        if task.data == "unsaid":
            return threading.Lock()
        if task.data == "error":
            raise KeyError("bad")
        return task.data * 2

    asked = queue.put_many(["a", "unsaid", "error"], result_ttl=60)
    queue.put("unsaid")  # no result is kept of it: what is returned does not matter
    (last,) = queue.put_many(["ends"], result_ttl=60)
    queue.run(handle, on_error="bury", stop=stop)
    assert queue.result(asked[0]) == "aa"
    with pytest.raises(EncodingError):
        queue.result(asked[1])
    with pytest.raises(KeyError):
        queue.result(asked[2])
    assert queue.result(last) == "endsends"
    assert queue.stats().counts["B"] == 2


def test_wrong_arguments_are_refused_before_anything_is_put(queue):
    for wrong in ({"result_ttl": 0}, {"result_ttl": "1"}, {"inbox": "name"}):
        with pytest.raises((ValueError, TypeError)):
            queue.put("data", **wrong)
    with pytest.raises(ValueError, match="lease"):
        queue.inbox(lease=0)
    assert queue.qsize() == 0
