"""Pack commands for the server (RESP, "Sending commands to a server") with hiredis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import hiredis


def pack_command(command: Iterable[Any]) -> bytes:
    """Pack a whole command. A signal that comes while hiredis 3.5 converts a number ends the
    process with a segmentation fault: so numbers are converted to text before."""
    # Most parts are bytes, and there may be thousands.
    texts: Any = tuple(
        [
            str(arg) if type(arg) is not bytes and isinstance(arg, int | float) else arg
            for arg in command
        ]
    )
    packed: bytes = hiredis.pack_command(texts)
    return packed


def or_none(value: int | str | None) -> int | str | bytes:
    """Return an argument of a script, empty for None."""
    return b"" if value is None else value


class KeyNames:
    """Packs the same keys of many queues, for each queue at once: packing one key after the other
    takes ten times as long."""

    def __init__(self, endings: Sequence[bytes]) -> None:
        """``endings``: the ends of the names, behind the beginning that the names of one queue
        share."""
        self._endings = endings
        #: For each length of a beginning, the bytes before, between and behind the beginnings.
        self._around: dict[int, list[bytes]] = {}

    def pack(
        self, command: str, script: str, begins: Iterable[bytes], args: Iterable[Any]
    ) -> bytes:
        """Pack a command that runs a script with all keys of these queues."""
        queues = [one.join(self._around.get(len(one)) or self._make(len(one))) for one in begins]
        before = pack_command((command, script, len(queues) * len(self._endings)))
        behind = pack_command(args)
        _, _, head = before.partition(b"\r\n")
        number, _, tail = behind.partition(b"\r\n")
        parts = 3 + len(queues) * len(self._endings) + int(number[1:])
        return b"".join([b"*%d\r\n" % parts, head, *queues, tail])

    def _make(self, size: int) -> list[bytes]:
        lines = [b"$%d\r\n" % (size + len(ending)) for ending in self._endings]
        ends = [ending + b"\r\n" for ending in self._endings]
        found = [end + line for end, line in zip([b"", *ends], [*lines, b""], strict=True)]
        self._around[size] = found
        return found
