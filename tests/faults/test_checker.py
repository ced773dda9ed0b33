"""The checker accepts the histories of a FIFO queue and rejects forged ones, for each rule."""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque

import pytest
from faults import histories, history_checker
from faults.histories import BUSY, CLOSED, DONE, EMPTY, FENCED, FULL, NEVER, UNKNOWN, Operation
from faults.history_checker import BUFFERED_RULES, Deliveries, History, check
from hypothesis import given
from hypothesis import strategies as st


def op(client, kind, item, begin, end, outcome=DONE):
    return Operation(client, kind, begin, end, outcome, item)


def put(client, item, begin, end, outcome=DONE):
    return op(client, "put", item, begin, end, outcome)


def get(client, item, begin, end, outcome=DONE):
    return op(client, "get", item, begin, end, outcome)


A1, A2, B1 = put("a", "a1", 0, 10), put("a", "a2", 20, 30), put("b", "b1", 12, 18)

#: rule -> histories that break it: operations, and perhaps what was left and the bound
FORGED = {
    "nothing_invented": [
        ([A1, get("c", "a1", 5, 15), get("c", "never put", 20, 30)],),
        ([A1], ["a1", "never put"]),
        ([A2, get("c", "a2", 0, 15)],),
        ([put("a", "a1", 0, 10, FULL), get("c", "a1", 5, 15)],),
    ],
    "nothing_twice": [
        ([A1, get("c", "a1", 5, 15), get("d", "a1", 6, 16)],),
        ([A1, get("c", "a1", 5, 15)], ["a1"]),
        ([A1], ["a1", "a1"]),
        ([put("a", "a1", 0, NEVER, UNKNOWN), get("c", "a1", 5, 15), get("d", "a1", 6, 16)],),
    ],
    "nothing_lost": [
        ([A1],),
        ([A1, A2, get("c", "", 35, NEVER, UNKNOWN)],),
        ([A1, get("c", "", 35, 40, EMPTY)],),
    ],
    "oldest_first": [
        ([A1, B1, get("c", "b1", 40, 50), get("d", "a1", 60, 70)],),
        ([A1, B1], ["b1", "a1"]),
        ([A1, B1, get("c", "b1", 40, 50)], ["a1"]),
    ],
    "producers_in_order": [
        ([A1, A2, get("c", "a2", 40, 50), get("c", "a1", 60, 70)],),
        ([A1, A2, get("c", "a2", 40, 50), get("d", "a1", 60, 70)],),
        ([A1, A2, get("c", "a2", 40, 50)], ["a1"]),
    ],
    "bound_kept": [
        ([A1, A2], ["a1", "a2"], 1),
        ([A1, A2, get("c", "a1", 31, 40), get("c", "a2", 41, 50)], [], 1),
    ],
    "honest_refusals": [
        ([A1, get("c", "", 15, 16, EMPTY)], ["a1"]),
        ([A1, get("c", "", 15, 16, CLOSED)], ["a1"]),
        ([A1, op("d", "shutdown", "", 11, 13), get("c", "", 15, 16, CLOSED)], ["a1"]),
        ([put("a", "a1", 0, 10, FULL)], [], 1),
        ([A1, get("c", "a1", 11, 12), put("b", "b1", 15, 16, FULL)], [], 1),
        ([op("d", "shutdown", "", 0, 5), put("a", "a1", 6, 10)], ["a1"]),
        ([put("a", "a1", 0, 10, CLOSED), op("d", "shutdown", "", 11, 12)],),
    ],
    "one_holder": [
        ([op("a", "producer", "", 0, 10), op("b", "producer", "", 5, 15)],),
        ([op("a", "producer", "", 0, 20), put("b", "b1", 12, 18)], ["b1"]),
        ([op("x", "consumer", "", 38, 52), A1, get("c", "a1", 40, 50)],),
    ],
}

#: What looks wrong and may be right, because operations overlap or their outcome is unknown.
POSSIBLE = [
    ([A1, get("c", "a1", 5, 6)],),
    ([A1, get("c", "", 5, NEVER, UNKNOWN)],),
    ([put("a", "a1", 0, NEVER, UNKNOWN)],),
    ([put("a", "a1", 0, NEVER, UNKNOWN), get("c", "a1", 500, 600)],),
    ([A1, put("b", "b1", 5, 15), get("c", "b1", 40, 50), get("d", "a1", 60, 70)],),
    ([A1, B1, get("c", "b1", 40, 50), get("d", "a1", 45, 70)],),
    ([A1, A2, get("d", "a1", 29, 40), get("d", "a2", 41, 50)], [], 1),
    ([A1, put("b", "b1", 15, 16, FULL)], ["a1"], 1),
    ([A1, get("c", "", 9, 16, EMPTY)], ["a1"]),
    ([A1, get("c", "", 12, 16, BUSY)], ["a1"]),
    ([put("a", "a1", 0, 10, FULL), put("b", "b1", 5, NEVER, UNKNOWN)], [], 1),
    ([op("d", "shutdown", "", 0, 5), put("a", "a1", 4, 10)], ["a1"]),
    ([op("d", "shutdown", "", 0, NEVER, UNKNOWN), put("a", "a1", 4, 10, CLOSED)],),
    ([op("a", "producer", "", 0, 10), op("b", "producer", "", 11, 15)],),
    ([op("a", "producer", "", 0, 10), op("b", "consumer", "", 5, 15)],),
    ([op("a", "producer", "", 0, 16), put("b", "b1", 12, 18)], ["b1"]),
    ([op("a", "producer", "", 0, 20), put("a", "a1", 2, 18)], ["a1"]),
]


@pytest.mark.parametrize(
    ("rule", "forged"),
    [(rule, history) for rule, bad in FORGED.items() for history in bad],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_forged_history_is_rejected(rule, forged):
    assert any(problem.startswith(rule + ":") for problem in check(History(*forged)))


def test_there_is_a_forged_history_for_each_rule():
    assert [rule.__name__ for rule in history_checker.RULES] == list(FORGED)


def test_with_buffers_each_consumer_gets_a_producers_items_in_order():
    fetched_ahead = [A1, A2, get("c", "a2", 40, 50), get("d", "a1", 60, 70)]
    assert check(History(fetched_ahead), BUFFERED_RULES) == []
    overtaken = [A1, A2, get("c", "a2", 40, 50), get("c", "a1", 60, 70)]
    (problem,) = check(History(overtaken), BUFFERED_RULES)
    assert problem.startswith("producers_in_order_at_each_consumer: get(a1) of c came after a2")


@pytest.mark.parametrize("history", POSSIBLE)
def test_a_possible_history_is_accepted(history):
    assert check(History(*history)) == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from([*["put", "get"] * 4, "shutdown"]),
        st.floats(0, 1),
        st.floats(0, 0.9),
    ),
    max_size=40,
)
BOUNDS = st.integers(0, 3)
#: An item is put and got, and then another.
TWICE = [("a", "put", 0.0, 0.0), ("b", "get", 0.0, 0.0)] * 2


def good_history(steps, bound):
    """What a FIFO queue answers to clients that do one thing after the other.

    Step n happens at the moment n; it begins some time before that and ends some time after it.
    """
    queue, shut, ended, done = deque(), False, {}, []
    for moment, (client, kind, before, after) in enumerate(steps, 1):
        item = ""
        if kind == "put":
            item = f"{client}{moment}"
            outcome = CLOSED if shut else FULL if 0 < bound <= len(queue) else DONE
            if outcome == DONE:
                queue.append(item)
        elif kind == "get":
            outcome = DONE if queue else CLOSED if shut else EMPTY
            item = queue.popleft() if queue else ""
        else:
            outcome, shut = DONE, True
        following = (n for n, step in enumerate(steps, 1) if n > moment and step[0] == client)
        begin = moment - before * (moment - ended.get(client, 0.0))
        end = ended[client] = moment + after * (next(following, moment + 10) - moment)
        done.append(op(client, kind, item, begin, end, outcome))
    return History(done, list(queue), bound)


@given(STEPS, BOUNDS)
def test_every_history_of_a_queue_is_accepted(steps, bound):
    assert check(good_history(steps, bound)) == []


def is_last_done(number, operations):
    """Whether nothing came of what the same client did after that."""
    client = operations[number].client
    return not any(o.client == client and o.outcome == DONE for o in operations[number + 1 :])


def in_turn(history, gets):
    """The pairs of gets one of which was before the other, as the puts of their items were."""
    for first, second in itertools.permutations(gets, 2):
        puts = history.put_of[first.item], history.put_of[second.item]
        if first.end < second.begin and puts[0].end < puts[1].begin:
            yield first, second


@given(STEPS, BOUNDS, st.data())
def test_a_client_that_did_not_live_to_tell_is_no_loss(steps, bound, data):
    history = good_history(steps, bound)
    operations = list(history.operations)
    numbers = [n for n in range(len(operations)) if is_last_done(n, operations)]
    number = data.draw(st.sampled_from([None, *numbers]))
    if number is not None:
        victim = operations[number]
        changed = dataclasses.replace(victim, end=NEVER, outcome=UNKNOWN)
        if victim.kind == "get":
            changed = dataclasses.replace(changed, item="")
        later = [o for o in operations[number + 1 :] if o.client != victim.client]
        operations = [*operations[:number], changed, *later]
    rest = [o.item for o in history.rest]
    assert check(History(operations, rest, bound)) == []


@given(STEPS, BOUNDS, st.data())
def test_a_good_history_that_is_spoilt_is_rejected(steps, bound, data):
    history = good_history([*TWICE, *steps], bound)
    gets = [o for o in history.operations if o.kind == "get" and o.outcome == DONE]
    one = data.draw(st.sampled_from(gets))
    rest = [o.item for o in history.rest]
    others = [o for o in history.operations if o is not one]
    spoil = data.draw(st.sampled_from(["lose", "repeat", "invent", "swap"]))
    if spoil == "lose":
        operations, rule = others, "nothing_lost"
    elif spoil == "repeat":
        again = dataclasses.replace(one, client="e")
        operations, rule = [*others, one, again], "nothing_twice"
    elif spoil == "invent":
        operations = [*others, dataclasses.replace(one, item="never put")]
        rule = "nothing_invented"
    else:
        first, second = data.draw(st.sampled_from(list(in_turn(history, gets))))
        operations = [o for o in history.operations if o not in (first, second)]
        operations += [
            dataclasses.replace(first, item=second.item),
            dataclasses.replace(second, item=first.item),
        ]
        rule = "oldest_first"
    assert any(problem.startswith(rule) for problem in check(History(operations, rest, bound)))


DELIVERED = [A1, A2, get("c", "a1", 31, 40), get("d", "a1", 50, 60), get("d", "a2", 61, 70)]
DONE_BY_C = op("c", "task_done", "a1", 41, 42)


def test_an_item_that_a_killed_consumer_had_may_come_again():
    deliveries = Deliveries(History(DELIVERED), ["c"])
    assert list(deliveries.problems()) == []
    assert deliveries.in_flight == 1


def test_a_consumer_that_slept_too_long_may_get_its_item_again():
    operations = [A1, get("c", "a1", 11, 20), op("c", "task_done", "a1", 50, 60, FENCED)]
    operations += [get("c", "a1", 61, 70), op("c", "task_done", "a1", 71, 80)]
    assert list(Deliveries(History(operations), ["c"]).problems()) == []
    assert list(Deliveries(History(operations), []).problems())


@pytest.mark.parametrize(
    ("operations", "killed"),
    [
        (DELIVERED, []),
        (DELIVERED, ["d"]),
        ([*DELIVERED, DONE_BY_C], ["c"]),
        ([A1, A2, get("c", "a1", 31, 40)], ["c"]),
        ([A1, get("c", "", 31, NEVER, UNKNOWN)], ["c"]),
    ],
    ids=["no client killed", "another killed", "it had acknowledged", "lost", "lost on its way"],
)
def test_forged_deliveries_are_rejected(operations, killed):
    assert list(Deliveries(History(operations), killed).problems())


def test_a_log_is_read_as_it_was_written(tmp_path):
    log = histories.Log(tmp_path, "a")
    log.begin("put", "a1")
    log.end()
    log.begin("get")
    log.end(DONE, "b1")
    log.begin("get")
    log.end(UNKNOWN)
    log.begin("get")
    log.close()
    roles = histories.Log(tmp_path, "a", "roles")
    roles.begin("producer")
    roles.end()
    roles.close()
    read = histories.read(tmp_path)
    assert [(o.client, o.kind, o.item, o.outcome) for o in read] == [
        ("a", "put", "a1", DONE),
        ("a", "get", "b1", DONE),
        ("a", "get", "", UNKNOWN),
        ("a", "get", "", UNKNOWN),
        ("a", "producer", "", DONE),
    ]
    assert all(o.begin <= o.end for o in read)
    assert [o.end for o in read[2:4]] == [NEVER, NEVER]
