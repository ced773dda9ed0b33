"""The checker of tasks accepts what can have happened, and rejects forged histories."""

from __future__ import annotations

import pytest
from faults.histories import DONE, FENCED, NEVER, UNKNOWN, Operation
from faults.task_checker import Lives


def op(client, kind, item, begin, end=None, outcome=DONE):
    end = NEVER if outcome == UNKNOWN else begin + 5 if end is None else end
    return Operation(client, kind, begin, end, outcome, item)


PUT = op("p", "put", "x", 0)


def take(worker, begin):
    return op(worker, "get", "x", begin)


def ack(worker, begin, outcome=DONE):
    return op(worker, "task_done", "x", begin, outcome=outcome)


#: A worker has another task.
BEFORE = [op("p", "put", "y", 0), op("a", "get", "y", 6)]

#: The operations, the client that was killed, and the tasks that were left.
POSSIBLE = [
    ([PUT, take("a", 10), ack("a", 20)], "", []),
    ([PUT], "", ["x"]),
    ([op("p", "put", "x", 0, outcome=UNKNOWN)], "p", []),
    ([PUT, take("a", 10), op("a", "release", "x", 20), take("b", 30), ack("b", 40)], "", []),
    ([PUT, take("a", 10), op("a", "bury", "x", 20)], "", ["x"]),
    ([PUT, take("a", 10), take("b", 30), ack("b", 40)], "a", []),
    ([PUT, take("a", 10), ack("a", 20, UNKNOWN)], "a", []),
    ([PUT, take("a", 10), ack("a", 20, UNKNOWN), take("b", 30), ack("b", 40)], "a", []),
    ([PUT, take("a", 10), take("b", 30), ack("b", 40), ack("a", 50, FENCED)], "a", []),
    ([PUT, take("a", 10), op("a", "next", "x>", 20)], "", []),
    ([PUT, take("a", 10), op("a", "next", "x>?", 20)], "", []),
    ([PUT, take("a", 10), op("a", "next", "x", 20, outcome=UNKNOWN)], "a", []),
    ([PUT, *BEFORE, op("a", "next", "y>x", 12), ack("a", 20)], "", []),
    # Stopped when it had taken x, which another gets and acknowledges before it noted that.
    (
        [
            *(PUT, *BEFORE, op("a", "next", "y>x", 12, 60), ack("a", 70, FENCED)),
            *(take("b", 30), ack("b", 40)),
        ],
        "a",
        [],
    ),
]

FORGED = {
    "lost": ([PUT], "", []),
    "lost in a killed worker's hands": ([PUT, take("a", 10)], "a", []),
    "lost when it was released": ([PUT, take("a", 10), op("a", "release", "x", 20)], "", []),
    "no client put it": ([take("a", 10), ack("a", 20)], "", []),
    "taken before it was put": ([op("p", "put", "x", 30), take("a", 10), ack("a", 40)], "", []),
    "left, and no client put it": ([], "", ["x"]),
    "there twice": ([PUT], "", ["x", "x"]),
    "acknowledged and there": ([PUT, take("a", 10), ack("a", 20)], "", ["x"]),
    "acknowledged and came again": (
        [PUT, take("a", 10), ack("a", 20), take("b", 30), ack("b", 40)],
        "a",
        [],
    ),
    "two at once": ([PUT, take("a", 10), take("b", 12), ack("a", 20), ack("b", 22)], "", []),
    "acknowledged by a take and came again": (
        [PUT, take("a", 10), op("a", "next", "x>", 20), take("b", 30), ack("b", 40)],
        "a",
        [],
    ),
    "taken after another and lost": ([PUT, *BEFORE, op("a", "next", "y>x", 12)], "", []),
    "taken after another, and two at once": (
        [PUT, *BEFORE, op("a", "next", "y>x", 12, 60), ack("a", 70), take("b", 30), ack("b", 40)],
        "a",
        [],
    ),
    "taken away from one that lived": (
        [PUT, take("a", 10), take("b", 12), ack("b", 20), ack("a", 30, FENCED)],
        "",
        [],
    ),
}


@pytest.mark.parametrize(("operations", "killed", "left"), POSSIBLE)
def test_the_lives_of_tasks_that_can_have_been_are_accepted(operations, killed, left):
    assert list(Lives(operations, killed, left).problems()) == []


@pytest.mark.parametrize("forged", FORGED)
def test_forged_lives_of_tasks_are_rejected(forged):
    assert list(Lives(*FORGED[forged]).problems())


@pytest.mark.parametrize(
    ("history", "result", "is_possible"),
    [
        ([PUT, take("a", 10), ack("a", 20)], "a", True),
        ([PUT, take("a", 10), ack("a", 20)], None, False),
        ([PUT, take("a", 10), ack("a", 20, UNKNOWN), take("b", 30), ack("b", 40)], "b", True),
        ([PUT, take("a", 10), ack("a", 20, UNKNOWN), take("b", 30), ack("b", 40)], "a", False),
        ([PUT, take("a", 10), ack("a", 20, UNKNOWN)], "a", True),
        ([PUT, take("a", 10), ack("a", 20, UNKNOWN)], None, True),
        ([PUT, take("a", 10)], "a", False),
        ([PUT], None, True),
    ],
)
def test_a_result_is_that_of_the_worker_that_acknowledged_the_task(history, result, is_possible):
    problems = list(Lives(history, "ab", []).problems_of_results({"x": result}))
    assert (problems == []) is is_possible
