"""The sockets by which other processes wake event loops: files in the folder of this user.

A datagram says only that something changed; the loop looks for itself what that is.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from ... import interrupts
from ...identity import shared_folder

_BEGIN = "loop,"
#: Seconds for which the file of a socket stays that nobody reads.
_OLD = 60


def listen() -> tuple[socket.socket, int]:
    """Make a socket; return it, and its number. Raises OSError."""
    folder = shared_folder.find(make=True)
    shared_folder.sweep(folder, _OLD, _remove_unread)
    number = int.from_bytes(os.urandom(8), "little") | 1
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.bind(_path(folder, number))
    except BaseException:
        made.close()
        raise
    return made, number


def wake(number: int) -> bool:
    """Wake the event loop with the socket of this number. Returns False when it has ended."""
    try:
        path = _path(shared_folder.find(), number)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(b"\0", path)
    except (ConnectionRefusedError, FileNotFoundError):
        remove(number)
        return False
    except OSError as error:
        if interrupts.is_from_outside(error):
            raise
        # The loop has yet to read what woke it before; or it looks by itself within a second.
    return True


def read(reader: socket.socket) -> None:
    """Read all that has come."""
    with suppress(BlockingIOError):
        while reader.recv(1):
            pass


def remove(number: int) -> None:
    """Remove the file of a socket that is closed."""
    with suppress(OSError):
        os.unlink(_path(shared_folder.find(), number))


def _path(folder: str, number: int) -> str:
    return os.path.join(folder, f"{_BEGIN}{number:016x}")


def _remove_unread(path: str) -> None:
    if not os.path.basename(path).startswith(_BEGIN):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        try:
            sender.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
