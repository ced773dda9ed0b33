"""Commands as they go over the wire."""

from __future__ import annotations

import enum

import hiredis
import pytest

from pressure_mp.engines.redis import scripts
from pressure_mp.engines.redis.commands import Command
from pressure_mp.engines.redis.lanes import Lane


class Bytes(bytes):
    pass


class Name(str, enum.Enum):
    A = "a"


LANE = Lane()
#: It is in no lane, and has no use for the number of a connection.
SCRIPT = scripts.load("fifo")["exists"]
BEGIN = ("EVALSHA", SCRIPT.sha, 1, "key")


def pack(args):
    command = Command(SCRIPT, [b"key"], b"kept", None)
    return command.pack(args, 1, LANE, b"")


def test_an_instance_of_a_subclass_is_packed_by_its_value_and_not_by_its_text():
    assert pack((Bytes(b"abc"), Name.A)).endswith(b"\r\n$3\r\nabc\r\n$1\r\na\r\n")


def test_a_value_that_is_no_argument_is_refused():
    with pytest.raises(TypeError):
        pack((None,))


@pytest.mark.parametrize("size", [0, 1, 9, 10, 99, 100, 1023, 1024, 1025, 100_000])
@pytest.mark.parametrize("number", [1, 3, 500])
def test_arguments_are_packed_as_the_server_reads_them(size, number):
    args = (b"\r\n" * (size // 2) + b"x" * (size % 2), "é", 12, -1) * number
    assert pack(args) == hiredis.pack_command((*BEGIN, *args))


@pytest.mark.parametrize("name", ["put_at_once", "take"])
def test_a_call_in_a_lane_has_its_place_and_its_number(name):
    script, kept = scripts.load("fifo")[name], b"kept:"
    args = (b"x" * 2000, "é", 12)
    packed = Command(script, [b"a", b"b"], kept, 60.0).pack(args, 7, LANE, b"12 60000")
    conn = (7,) if script.wants_connection else ()
    begin = ("EVALSHA", script.sha, 3, b"a", b"b", kept + LANE.id)
    assert packed == hiredis.pack_command((*begin, *args, *conn, b"12 60000"))
