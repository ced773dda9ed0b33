"""The ring whose items can be held, beside lists that do the same."""

from __future__ import annotations

import os
import random
import uuid
from collections import deque

import pytest

from pressure_mp.engines.contract.items import Hold
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.engines.shared import layout
from pressure_mp.engines.shared.deliveries import HoldingRing, State


@pytest.fixture
def make(folder, resize):
    resize(40)
    return lambda: HoldingRing(str(folder / uuid.uuid4().hex), 0)


@pytest.mark.parametrize("seed", range(12))
def test_held_items_stay_as_they_are_until_they_are_acknowledged(make, seed):
    chance, ring, calls = random.Random(seed), make(), 0
    queued, returned, held = deque(), {}, {}  # by number: the item, and for held ones the owner
    for step in range(4000):
        if step % 50 == 0:
            wanted, size = chance.choice([0, 2, 10, 40]), chance.choice([10, 500, 4000])
        if len(queued) < wanted or chance.random() < 0.3:
            item = step.to_bytes(4, "little") * chance.randint(1, size)
            if ring.append([item]) == 1:
                queued.append(item)
        elif chance.random() < 0.5 and len(held) < 8:
            calls += 1
            owner, limit = chance.choice(["one", "two", "three"]), chance.randint(1, 3)
            hold = Hold(owner, calls)
            taken = ring.take_at_once(hold, None) if limit == 1 else None
            assert taken is None or (queued and not returned)
            items, numbers = taken or reversed(ring.hold(limit, hold))
            assert list(numbers) == sorted(numbers)
            first = [returned.pop(number) for number in sorted(returned)[:limit]]
            expected = first or [queued.popleft() for _ in range(min(limit, len(queued)))]
            assert items == expected
            held.update(
                {number: (item, owner) for number, item in zip(numbers, items, strict=True)}
            )
        elif len(held) > 2 and chance.random() < 0.99:
            number = chance.choice(list(held)[2:])  # the others are kept for long
            assert ring.acknowledge("nobody", number) is Outcome.LATE
            assert ring.acknowledge(held.pop(number)[1], number) is Outcome.DONE
        elif held:
            owner = chance.choice(["one", "two", "three"])
            assert ring.requeue(owner, None, ()) == []
            gone = [number for number, (_, whose) in held.items() if whose == owner]
            returned.update({number: held.pop(number)[0] for number in gone})
        if step % 10 == 0:
            kept = ring.with_state(State.HELD)
            assert {one.number: (ring.item(one), one.owner) for one in kept} == held
        assert ring.length == len(queued) + len(returned)
        assert ring.unfinished == ring.length + len(held)
    assert [ring.item(entry) for entry in ring.with_state(State.RETURNED)] == [
        returned[number] for number in sorted(returned)
    ]


def test_an_entry_whose_item_was_not_taken_does_not_count(make):
    ring = make()
    assert ring.append([b"first", b"second"]) == 2
    numbers, _ = ring.hold(1, Hold("killed", 1))
    # As if the process had been killed before the beginning of the ring went past the item.
    ring._cells[layout.HEAD] -= 1 << 28
    ring._cells[layout.HEAD] -= (ring._cells[layout.HEAD] & layout.PLACE) - 512
    ring._cells[layout.PREPARED] = 1
    assert (ring.length, ring.unfinished, list(ring.entries())) == (2, 2, [])
    again, items = ring.hold(2, Hold("alive", 2))
    assert (again, items) == ([*numbers, numbers[0] + 1], [b"first", b"second"])
    assert [entry.owner for _, entry in ring.entries()] == ["alive", "alive"]


def test_items_of_one_call_or_of_some_numbers_go_back_alone(make):
    ring = make()
    ring.append([b"0", b"1", b"2", b"3"])
    (zero,), _ = ring.hold(1, Hold("owner", 1))
    (one, two), _ = ring.hold(2, Hold("owner", 2))
    assert ring.requeue("owner", 1, ()) == []
    assert [entry.number for entry in ring.with_state(State.RETURNED)] == [zero]
    assert ring.requeue("owner", None, (two,)) == []
    returned = ring.with_state(State.RETURNED)
    # No get returned the second one: so it counts as not delivered.
    assert [(entry.number, entry.deliveries) for entry in returned] == [(zero, 1), (two, 0)]
    assert [entry.number for entry in ring.with_state(State.HELD)] == [one]


def test_a_process_that_holds_more_and_more_items_seldom_looks_for_free_entries(make, monkeypatch):
    ring, looks = make(), []
    column = ring._column
    monkeypatch.setattr(ring, "_column", lambda place: looks.append(place) or column(place))
    assert ring.append([b"x"] * 400) == 400
    numbers = [ring.take_at_once(Hold("owner", call), None).numbers[0] for call in range(400)]
    assert len(looks) < 20
    for number in reversed(numbers):
        assert ring.acknowledge("owner", number) is Outcome.DONE
    assert ring.append([b"x"] * 400) == 400
    for call in range(400):
        assert ring.take_at_once(Hold("owner", call), None)
    assert ring._cells[layout.ENTRIES] == 400  # the same entries


def test_no_more_items_are_held_than_the_table_has_entries(make):
    ring = make()
    number = layout.TABLE // 256
    assert ring.append([b"x"] * number) == number
    for _ in range(number // 256):
        assert len(ring.hold(256, Hold("owner", 1))[0]) == 256
    assert ring.append([b"y"]) == 1
    assert ring.hold(1, Hold("owner", 2)) is None
    assert ring.acknowledge("owner", ring.with_state(State.HELD)[7].number) is Outcome.DONE
    assert ring.hold(1, Hold("owner", 2))[1] == [b"y"]
    assert os.stat(ring.path).st_blocks * 512 < 2 * layout.TABLE + 40 * layout.PAGE
