"""A task's state, as users see it: a member of an enum that is a str, its letter."""

from __future__ import annotations

import json
import pickle

import pytest

from pressure_mp import (
    ArgumentError,
    NotTaken,
    TaskExists,
    TaskNotFound,
    TaskQueue,
    TaskState,
    WrongState,
)


@pytest.fixture
def queue(url, name):
    with TaskQueue(name, url=url, keep=True) as queue:
        yield queue
        queue.delete()


def test_a_state_is_its_letter_and_has_a_word():
    assert TaskState.READY == "R"
    assert TaskState("R") is TaskState.READY
    assert {TaskState.READY: 1}["R"] == 1
    assert f"{TaskState.READY}{TaskState.DONE!s:>2} %s" % TaskState.TAKEN == "R D T"
    assert json.dumps({TaskState.READY: TaskState.DONE}) == '{"R": "D"}'
    assert pickle.loads(pickle.dumps(TaskState.ZOMBIE)) is TaskState.ZOMBIE
    words = [state.word for state in TaskState]
    assert words == ["ready", "waiting", "taken", "buried", "zombie", "done", "void"]


def test_a_task_has_a_state_through_its_life(queue):
    queue.put("task")
    task = queue.take()
    assert task.state is TaskState.TAKEN
    task.release(delay=3600)
    assert task.state is TaskState.WAITING
    assert queue.restart(task.id).state is TaskState.READY
    with queue.take() as task:
        pass
    assert task.state is TaskState.DONE
    assert queue.kill(task).state is TaskState.VOID


def test_filters_take_a_state_its_letter_or_its_word(queue):
    id = queue.put("task")
    for ready in (TaskState.READY, "R", "ready"):
        assert [task.id for task in queue.list(ready)] == [id]
    for buried, other in ((TaskState.BURIED, "D"), ("B", "done"), ("buried", TaskState.READY)):
        assert queue.switch(id, buried).state is TaskState.BURIED
        assert queue.switch(id, other).state is not TaskState.BURIED


@pytest.mark.parametrize("state", [TaskState.VOID, "X", "void", "S", "asleep", ["R"]])
def test_a_state_that_no_queued_task_can_have_is_refused(queue, state):
    id = queue.put("task")
    with pytest.raises(ArgumentError, match="the states are R \\(ready\\)"):
        queue.list(state)
    with pytest.raises(ArgumentError, match="is not a state"):
        queue.switch(id, state)


def test_statistics_count_by_state(queue):
    queue.put_many(["a", "b"], tube="tube")
    queue.take().ack()
    stats = queue.stats()
    expected = {**dict.fromkeys(TaskState, 0), TaskState.READY: 1, TaskState.DONE: 1}
    del expected[TaskState.VOID]
    for counted in (stats, stats.tubes["tube"]):
        assert counted.counts == expected
        assert all(isinstance(state, TaskState) for state in counted.counts)
        assert counted.counts["D"] == 1
        assert counted.words == {state.word: number for state, number in expected.items()}
    letters = stats.as_dict()
    assert letters["counts"] == {"R": 1, "W": 0, "T": 0, "B": 0, "Z": 0, "D": 1}
    assert {type(state) for state in letters["counts"]} == {str}
    assert stats.as_dict(words=True)["transition"] == {
        "void-ready": 2,
        "ready-taken": 1,
        "taken-done": 1,
    }


def test_an_error_has_the_state_that_the_task_is_in(queue):
    id = queue.put("task")
    for error, state, call in (
        (NotTaken, TaskState.READY, lambda: queue.ack(id)),
        (WrongState, TaskState.READY, lambda: queue.kick(id)),
        (TaskNotFound, TaskState.VOID, lambda: queue.peek(id + 1)),
        (TaskExists, TaskState.READY, lambda: queue.put("task", id=id)),
    ):
        with pytest.raises(error) as caught:
            call()
        for one in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            assert one.state is state
