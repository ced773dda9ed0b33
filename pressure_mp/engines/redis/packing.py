"""The arguments of a command as the server reads them (RESP, "Sending commands to a server")."""

from __future__ import annotations

from typing import Any

import hiredis

#: For more arguments than this, or a first one of more bytes, hiredis's packer is too slow: it lets
#: its text grow step by step, so that 95 items of 10 KB took four times as long as here.
_MANY = 20
_LARGE = 4096


def pack(args: tuple[Any, ...]) -> bytes | memoryview:
    """The end of the line before the arguments, and all of them."""
    if len(args) > _MANY or (args and type(args[0]) is bytes and len(args[0]) > _LARGE):
        pieces = []
        for arg in args:
            text = arg if type(arg) is bytes else str(arg).encode()
            pieces += (b"\r\n$%d\r\n" % len(text), text)
        pieces.append(b"\r\n")
        return b"".join(pieces)
    return memoryview(hiredis.pack_command(args))[len(b"*%d" % len(args)) :]
