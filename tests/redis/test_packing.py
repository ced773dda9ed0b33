"""Commands as they go over the wire."""

from __future__ import annotations

import hiredis
import pytest

from pressure_mp.engines.redis.packing import pack


@pytest.mark.parametrize("size", [0, 1, 9, 10, 99, 100, 1023, 1024, 1025, 100_000])
@pytest.mark.parametrize("number", [1, 3, 500])
def test_arguments_are_packed_as_the_server_reads_them(size, number):
    args = (b"\r\n" * (size // 2) + b"x" * (size % 2), "é", 12, -1) * number
    packed = pack((b"*%d\r\n$4\r\nECHO" % (len(args) + 1),), args)
    assert packed == hiredis.pack_command(("ECHO", *args))
