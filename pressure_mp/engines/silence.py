"""Times for the check of a silent connection, and the test that tells a slow one from it."""

from __future__ import annotations

import fcntl
import struct
import termios

#: Seconds without a byte from the server until a call that waits for its reply asks the server.
SILENCE = 6.0
#: Seconds for a reply that may have been on its way when the server answered.
GRACE = 0.5


def unconfirmed(descriptor: int) -> int:
    """Count the bytes of a connected socket that its peer has not confirmed (tcp(7), ``SIOCOUTQ``);
    0 where the system does not tell."""
    try:
        found = fcntl.ioctl(descriptor, termios.TIOCOUTQ, struct.pack("i", 0))
    except (OSError, ValueError):  # it was closed
        return 0
    (size,) = struct.unpack("i", found)
    return int(size)
