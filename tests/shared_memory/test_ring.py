"""The ring of items, beside a list that does the same."""

from __future__ import annotations

import os
import random
import uuid
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pressure_mp.engines.shared import layout
from pressure_mp.engines.shared import ring as rings
from pressure_mp.engines.shared.reading import Ring

_SIZES = st.one_of(st.integers(0, 40), st.integers(1000, 6000))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(_SIZES, min_size=1, max_size=6)),
        st.tuples(st.just("take"), st.integers(1, 5)),
        st.tuples(st.just("give back"), st.integers(1, 3)),
        st.tuples(st.just("advance"), st.integers(0, 4)),
        st.tuples(st.just("read"), st.integers(0, 4)),
    ),
    max_size=60,
)


class Taking:
    def __init__(self) -> None:
        self.taken_here: list[bytes] = []


@pytest.fixture
def make(folder, resize):
    resize(17)
    return lambda bound=0: Ring(str(folder / uuid.uuid4().hex), bound)


@pytest.mark.parametrize("bound", [0, 4])
def test_a_ring_behaves_as_a_queue_for_every_sequence_of_steps(make, bound):
    @settings(max_examples=400)
    @given(_STEPS)
    def check(steps):
        ring, model, taken = make(bound), deque(), []
        for number, (step, argument) in enumerate(steps):
            if step == "append":
                items = [bytes([number % 256]) * size for size in argument]
                added = ring.append(items)
                room = bound - len(model) if bound else len(items)
                assert added == -1 or added <= max(room, 0)
                assert added != -1 or sum(map(len, model)) + len(items[0]) > 16_000
                model += items[: max(added, 0)]
            elif step == "take":
                taker = Taking()
                assert ring.take(argument, taker) == bool(model)
                taken = taker.taken_here
                assert taken == [model.popleft() for _ in range(min(argument, len(model)))]
            elif step == "give back":
                items = taken[-argument:]
                if items and ring.give_back(given_back := list(items)):
                    assert given_back == []
                    model.extendleft(items[::-1])
                    taken = []
            elif step == "advance":
                number_there = min(argument, len(model))
                ring.advance(ring.first + number_there)
                for _ in range(number_there):
                    model.popleft()
            else:
                assert ring.read(argument, 3) == list(model)[argument : argument + 3]
            assert ring.length == len(model)
        assert ring.read(0, 1000) == list(model)
        os.unlink(ring.path)

    check()


@pytest.mark.parametrize("seed", range(12))
def test_a_ring_of_any_length_is_a_queue_and_writes_only_where_memory_is_allocated(
    make, resize, monkeypatch, seed
):
    chance, calls, allocate = random.Random(seed), [], os.posix_fallocate
    resize(40)
    monkeypatch.setattr(os, "posix_fallocate", lambda *where: calls.append(allocate(*where)))
    ring, model, taken, seen = make(), deque(), [], set()
    for number in range(3000):
        if number % 40 == 0:
            wanted = chance.choice([0, 1, 3, 8, 15, 30, 50, 100])
            size = chance.choice([10, 500, 4000])
        calls.clear()
        before = os.stat(ring.path).st_blocks
        if taken and chance.random() < 0.1:
            given = list(taken)
            if ring.give_back(given):
                model.extendleft(reversed(taken))
            taken = []
        elif len(model) < wanted or chance.random() < 0.3:
            item = number.to_bytes(4, "little") * chance.randint(1, size)
            model += [item] * (ring.append([item]) == 1)
        else:
            taker = Taking()
            assert ring.take(chance.randint(1, 3), taker) == bool(model)
            taken = taker.taken_here
            assert taken == [model.popleft() for _ in taken]
        assert os.stat(ring.path).st_blocks <= before or calls
        assert ring.length == len(model)
        top, tail = ring._cells[layout.TOP], ring._cells[layout.TAIL] & layout.PLACE
        seen.add((top > 0) + (0 < top <= tail))
    assert ring.read(0, 1000) == list(model)
    assert seen == {0, 1, 2}  # all states of the ring


def test_memory_is_allocated_for_the_queued_items_only(make, monkeypatch):
    monkeypatch.setattr(rings, "_SIZE", 1 << 24)
    monkeypatch.setattr(rings, "_UNITS", 1 << 21)
    ring = make()
    item = bytes(layout.PAGE)

    def pages():
        return os.stat(ring.path).st_blocks * 512 // layout.PAGE

    for _ in range(1000):
        assert ring.append([item]) == 1
    assert pages() > 1000
    for left in reversed(range(1000)):
        assert ring.take(1, Taking())
        assert pages() < left + 16
    assert ring.append([item]) == 1
    for _ in range(5000):  # a queue that is never empty goes round in the file
        assert ring.append([item, item]) == 2
        assert ring.take(2, Taking())
        assert pages() < 16


def test_an_item_larger_than_the_ring_finds_no_room(make):
    ring = make()
    assert ring.append([bytes(70_000)]) == -1
    assert ring.append([b"x", bytes(70_000)]) == 1
    assert ring.read(0, 10) == [b"x"]


def test_items_that_are_appended_through_another_mapping_are_seen(make):
    ring = make(3)
    other = Ring(ring.path)
    assert other.bound == 3
    assert other.append([b"a", b"b", b"c", b"d"]) == 3
    taker = Taking()
    assert ring.take(2, taker)
    assert taker.taken_here == [b"a", b"b"]
    assert other.length == 1


@pytest.mark.parametrize("size", [0, 8192, layout.PAGE + rings._SIZE])
def test_a_file_that_is_not_made_yet_is_as_none(folder, size):
    path = folder / f"of {size}"
    with open(path, "wb") as file:
        file.truncate(size)
    with pytest.raises(FileNotFoundError, match=str(path)):
        Ring(str(path))


def test_a_file_that_cannot_grow_takes_no_more(make, monkeypatch):
    ring = make()
    monkeypatch.setattr(rings, "_SIZE", 1 << 20)
    monkeypatch.setattr(rings, "_UNITS", 1 << 17)
    monkeypatch.setattr(os, "posix_fallocate", os.posix_fallocate)
    big = make()

    def refuse(*args: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert big.append([bytes(3000)]) == 1
    assert big.append([bytes(3000)]) == -1
    assert big.length == 1
    assert ring.append([b"x"]) == 1


def test_the_end_of_a_reservation_notes_how_many_items_counted(make):
    ring = make()
    assert ring.ended("reader") is None
    for number in range(80):
        ring.note_ended(f"reader {number}", number)
    assert ring.ended("reader 79") == 79
    assert ring.ended("reader 16") == 16
    assert ring.ended("reader 15") is None  # it was noted too long ago
    ring.note_ended("reader 20", 21)
    assert ring.ended("reader 20") == 21
    assert ring.begin_reading("reader 20", 1, 21, 0)
    assert ring.ended("reader 20") is None
    assert ring.ended("reader 16") == 16
