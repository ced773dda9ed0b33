"""The commands that run scripts: numbered, and packed as the server reads them (RESP, "Sending
commands to a server").

The packer of redis-py (hiredis) lets its text grow step by step: it takes twice as long for 500
small items, and four times for 95 items of 10 KB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from .lanes import Lane
from .packing import pack_command
from .scripts import Script

#: The first line of a command of so many parts.
_BEGINNINGS = [b"*%d" % number for number in range(64)]
#: The end of the line before an argument of so many bytes, and the line that says how many.
_LINES = [b"\r\n$%d\r\n" % size for size in range(1024)]


class Command:
    """The command that runs a script on a queue."""

    __slots__ = (
        *("_before_given", "_constant", "_given", "_in_lane", "_keep", "_kept", "_parts"),
        *("_wants_connection", "script"),
    )

    def __init__(
        self, script: Script, keys: Sequence[bytes], kept: bytes, keep: float | None
    ) -> None:
        """``kept`` begins the names of the keys that keep the lanes' replies; a reply to this
        command is kept for ``keep`` seconds at least, None when it may be done twice."""
        self.script = script
        self._in_lane = script.in_lane
        self._wants_connection = script.wants_connection
        self._kept, self._keep = kept, keep
        lane = b"-" * Lane.ID_SIZE
        names = [*keys, kept + lane] if script.in_lane else keys
        before: tuple[Any, ...] = ("EVALSHA", script.sha, len(names) + script.given)
        #: The number of parts without the arguments of a call; the keys that come with the call are
        #: among the arguments.
        self._parts = len(before) + len(names) + script.in_lane
        #: All parts between the first line and the arguments, without the lane's id at the end;
        #: where keys come with the call, the parts before these are separate.
        self._constant = _constant(before + tuple(names)).removesuffix(
            lane if script.in_lane else b""
        )
        self._before_given, self._given = b"", script.given
        if script.given:
            self._before_given = _constant(before)
            self._constant = self._constant[len(self._before_given) :]

    def number(self, lane: Lane, says_how_long: bool = False) -> bytes:
        """Make the number of a new call; empty when it may be done twice.

        It also states for how many milliseconds the call's reply is kept, if the last number that
        did so is ``keep`` seconds old: so each reply is kept for at least ``keep`` seconds. A
        number for a call that is done later ``says_how_long`` in any case.
        """
        if self._keep is None:
            return b""
        now, number = monotonic(), lane.number + 1
        lane.number = number
        if not (says_how_long or lane.is_to_tell(self._kept, now)):
            return b"%d" % number
        lane.tell(self._kept, now, now + self._keep)
        return b"%d %d" % (number, round(self._keep * 2000))

    def pack(self, args: tuple[Any, ...], conn: int, lane: Lane, number: bytes) -> bytes:
        """Pack the whole command: in a lane, under a number, for a connection's client."""
        if self._wants_connection:
            args = (*args, conn)
        parts = self._parts + len(args)
        pieces = [_BEGINNINGS[parts] if parts < 64 else b"*%d" % parts]
        if self._before_given:
            pieces.append(self._before_given)
            for key in args[: self._given]:
                size = len(key)
                pieces += _LINES[size] if size < 1024 else b"\r\n$%d\r\n" % size, key
            args = args[self._given :]
        pieces.append(self._constant)
        if self._in_lane:
            pieces.append(lane.id)
        for arg in args:
            text = arg if type(arg) is bytes else _text(arg)
            size = len(text)
            pieces.append(_LINES[size] if size < 1024 else b"\r\n$%d\r\n" % size)
            pieces.append(text)
        if self._in_lane:
            pieces.append(_LINES[len(number)])
            pieces.append(number)
        pieces.append(b"\r\n")
        return b"".join(pieces)


def _constant(parts: tuple[Any, ...]) -> bytes:
    """Pack the parts that many commands begin with, without their number, and without the end."""
    packed = pack_command(parts)
    return packed[packed.index(b"\r\n") : -2]


class Commands(dict[str, Command]):
    """The commands of a queue, by their scripts' names; each is made when it is first used."""

    def __init__(self, make: Callable[[str], Command]) -> None:
        self._make = make

    def __missing__(self, op: str) -> Command:
        command = self[op] = self._make(op)
        return command


def _text(arg: Any) -> bytes:
    if isinstance(arg, int):  # True is 1
        return b"%d" % arg
    if type(arg) is float:
        return str(arg).encode()
    # Take the text of a subclass, not its __str__: an Enum can be a str.
    return str.encode(arg) if isinstance(arg, str) else bytes(memoryview(arg))
