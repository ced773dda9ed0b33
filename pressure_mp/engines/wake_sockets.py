"""The sockets by which processes of this user wake each other's threads and event loops: files in
the folder of this user.

A datagram names at most a session; the woken thread or loop looks itself for a change.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from .. import interrupts
from ..identity import shared_folder

_BEGIN = "wake,"
#: Seconds for which the file of a socket stays that nobody reads.
_OLD = 60


def listen(name: str) -> socket.socket:
    """Make a socket that does not block. Raises OSError."""
    folder = shared_folder.find(make=True)
    shared_folder.sweep(folder, _OLD, _remove_unread)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.bind(_path(folder, name))
    except BaseException:
        made.close()
        raise
    return made


def wake(name: str, message: bytes = b"\0") -> bool:
    """Send a datagram to the socket of this name. Returns False when nobody has it any more."""
    try:
        path = _path(shared_folder.find(), name)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(message, path)
    except (ConnectionRefusedError, FileNotFoundError):
        remove(name)
        return False
    except OSError as error:
        if interrupts.is_from_outside(error):
            raise
        # Its reader has yet to read what woke it before; or it looks by itself within a second.
    return True


def read(reader: socket.socket) -> None:
    """Read all that has come."""
    with suppress(BlockingIOError):
        while reader.recv(1):
            pass


def remove(name: str) -> None:
    """Remove the file of a socket that is closed."""
    with suppress(OSError):
        os.unlink(_path(shared_folder.find(), name))


def _path(folder: str, name: str) -> str:
    return os.path.join(folder, _BEGIN + name)


def _remove_unread(path: str) -> None:
    if not os.path.basename(path).startswith(_BEGIN):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        try:
            sender.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
