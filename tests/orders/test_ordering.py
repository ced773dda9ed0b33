"""Bytes that sort as Python sorts."""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from pressure_mp import ArgumentError, ArgumentTypeError
from pressure_mp.encoding.sort_keys import decode, encode, encode_item

numbers = (
    st.booleans()
    | st.integers()
    | st.integers(-70, 70).map(lambda power: 3 * 2**70 + (1 << (power + 70)))
    | st.integers(1, 400).map(lambda power: -(1 << (power * 97)))
    | st.floats(allow_nan=False)
    | st.sampled_from([0.0, -0.0, math.inf, -math.inf, 5e-324, -5e-324, 2**53, 2.0**53, 2**53 + 1])
)
texts = st.text(st.characters()) | st.text(st.sampled_from("\0\x01\x0f\x10\x11a\ud800\uffff𐀀"))
blobs = st.binary() | st.lists(st.integers(0, 18)).map(bytes)
scalars = st.none() | numbers | texts | blobs
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple)
)


def compare(one, other):
    """-1, 0 or 1, as Python compares; None when it cannot."""
    try:
        return 0 if one == other else -1 if one < other else 1
    except TypeError:
        return None


def kind_of_difference(one, other):
    """Whether the bytes tell that the values cannot be compared, as a broker's script does."""
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            return 0 < mine < 16 and 0 < its < 16
    return False


@pytest.mark.parametrize(
    "kind", [numbers, texts, blobs, st.lists(numbers), st.tuples(texts, numbers)]
)
@given(data=st.data())
def test_bytes_of_one_kind_sort_as_the_values_do(kind, data):
    one, other = data.draw(kind), data.draw(kind)
    assert compare(encode(one), encode(other)) == compare(one, other)


@given(values, values)
def test_values_of_all_kinds_compare_as_in_python_or_are_told_apart_where_it_cannot(one, other):
    expected = compare(one, other)
    if expected is None:
        assert kind_of_difference(encode(one), encode(other))
    else:
        assert not kind_of_difference(encode(one), encode(other))
        assert compare(encode(one), encode(other)) == expected


@given(values, values)
def test_no_encoding_begins_with_another(one, other):
    first, second = encode(one), encode(other)
    assert first == second or not second.startswith(first)


@given(values)
def test_an_encoded_value_can_be_read_back(value):
    assert decode(encode(value)) == value


@given(st.lists(st.tuples(numbers, texts, st.sampled_from([{}, [object()], object]))))
def test_a_tuple_is_ordered_by_the_members_that_can_be(items):
    expected = sorted(items, key=lambda item: item[:2])
    assert sorted(items, key=encode_item) == expected


@given(st.lists(numbers | st.tuples(texts)).map(tuple) | scalars)
def test_a_tuple_whose_members_can_all_be_ordered_is_encoded_whole(item):
    assert encode_item(item) == encode(item)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: int


class Backwards(int):
    def __lt__(self, other):
        return int(self) > int(other)


def test_classes_that_compare_as_their_base_does_are_taken_for_it():
    assert encode(Level.HIGH) == encode(2)
    assert encode(Point(1, 2)) == encode((1, 2))


@pytest.mark.parametrize(
    "value", [{}, object(), 1j, {1}, bytearray(b"x"), Backwards(1), (1, {}), [object()]]
)
def test_other_types_are_refused_and_named(value):
    with pytest.raises(ArgumentTypeError, match="has no order that a broker can keep"):
        encode(value)


@pytest.mark.parametrize("item", [({}, 1), ((1, {}), 1), {}, object()])
def test_an_item_that_does_not_begin_with_a_priority_is_refused(item):
    with pytest.raises(TypeError):
        encode_item(item)


@pytest.mark.parametrize("value", [math.nan, (1, math.nan), [math.nan]])
def test_nan_is_refused(value):
    with pytest.raises(ArgumentError, match="nan"):
        encode(value)
    with pytest.raises(ArgumentError, match="nan"):
        encode_item((1, value))
