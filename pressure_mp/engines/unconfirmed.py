"""Tell a slow connection from a silent one: the bytes that the system still has to send."""

from __future__ import annotations

import fcntl
import struct
import termios


def unconfirmed(descriptor: int) -> int:
    """The bytes of a connected socket that its peer has not confirmed (tcp(7), ``SIOCOUTQ``); 0
    where the system does not tell."""
    try:
        found = fcntl.ioctl(descriptor, termios.TIOCOUTQ, struct.pack("i", 0))
    except (OSError, ValueError):  # it was closed
        return 0
    (size,) = struct.unpack("i", found)
    return int(size)
