"""The contents of large items: sent before the manifest is queued, read after it was got."""

from __future__ import annotations

from ..effects import CLOSED, DONE, LOST, MISSING, ONE_TRY, Call, Now, Operation, Reply
from ..exceptions import PressureError
from ..large import Large, Manifest, divide

#: How often in its lease one who reads a content says that it is still doing so.
_RENEWALS = 3


def store(large: Large, lease: int, end: float | None) -> Operation[Reply]:
    """Send a content, part by part; from then on its manifest can be put for a lease.

    Answers the last reply: DONE, CLOSED or MISSING.
    """
    reply: Reply = [LOST]
    while reply[0] == LOST:
        for number, part in enumerate(divide(large.segments)):
            reply = yield Call("store", (large.token, number, lease, part), end)
            if reply[0] != DONE:
                break
    assert reply[0] in (DONE, CLOSED, MISSING)
    return reply


def fetch(manifest: Manifest, lease: int) -> Operation[list[bytearray] | None]:
    """Read a content, part by part; None when it is no longer there.

    It is kept meanwhile, for the one that got the manifest.
    """
    segments = manifest.allocate()
    pause = lease / 1000 / _RENEWALS
    renewed: float = yield Now()
    for number, part in enumerate(divide([memoryview(segment) for segment in segments])):
        reply: Reply = yield Call("fetch", (manifest.token, number, part))
        if reply[0] != DONE:
            return None
        now: float = yield Now()
        if now - renewed > pause:
            yield Call("hold", (manifest.token, lease))
            renewed = now
    return segments


def sweep(token: str = "") -> Operation[None]:
    """Remove the content of ``token``, unless it is queued; and what nobody needs any more."""
    left = True
    try:
        while left:
            reply: Reply = yield Call("sweep", (token,), ONE_TRY)
            left = bool(reply[1])
    except PressureError:
        pass  # whoever comes later sweeps too
