"""Commands as they go over the wire."""

from __future__ import annotations

import enum

import hiredis
import pytest

from pressure_mp.engines.redis.packing import pack


class Bytes(bytes):
    pass


class Name(str, enum.Enum):
    A = "a"


def test_what_a_subclass_is_goes_over_the_wire_and_not_how_it_shows_itself():
    assert pack((b"*2\r\n$4\r\nECHO",), (Bytes(b"abc"), Name.A)) == (
        b"*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n$1\r\na\r\n"
    )


def test_what_is_no_argument_is_refused():
    with pytest.raises(TypeError):
        pack((b"*2\r\n$4\r\nECHO",), (None,))


@pytest.mark.parametrize("size", [0, 1, 9, 10, 99, 100, 1023, 1024, 1025, 100_000])
@pytest.mark.parametrize("number", [1, 3, 500])
def test_arguments_are_packed_as_the_server_reads_them(size, number):
    args = (b"\r\n" * (size // 2) + b"x" * (size % 2), "é", 12, -1) * number
    packed = pack((b"*%d\r\n$4\r\nECHO" % (len(args) + 1),), args)
    assert packed == hiredis.pack_command(("ECHO", *args))
