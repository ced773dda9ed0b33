"""Choose what a handle buffers: what the program asked for, or what such a queue has unasked."""

from __future__ import annotations

import os

from ..exceptions import ArgumentError
from ..handles.arguments import check_ahead
from ..handles.objects import Buffering, ObjectAttachment, UntilDone
from .direct import DirectGet, DirectPut

#: How many items may wait to be sent, where the program does not say.
_BUFFERING = 4000
#: The environment variable for a program that does not say.
_VARIABLE = "PRESSURE_BUFFERING"


def choose(
    queue: ObjectAttachment, buffering: int | None, prefetch: int | None, bound: int
) -> None:
    """Decide for a new handle. Raises ArgumentError, ArgumentTypeError."""
    for what, number in (("buffering", buffering), ("prefetch", prefetch)):
        if number and not queue.is_fifo:
            raise ArgumentError(
                f"a {queue.traits.handle} cannot have {what}={number}: it would serve in "
                "another order. Leave it out; put_many and get_many are fast too"
            )
    stated = _stated(queue, buffering)
    is_plain = prefetch is None and not queue.eof
    queue.buffering = Buffering(
        puts=_unasked(queue, bound) if stated is None else stated,
        is_stated=stated is not None,
        gets=check_ahead("prefetch", prefetch or 0),
        reserves=is_plain and not isinstance(queue, UntilDone) and _may_unasked(queue, bound),
    )
    stays = queue.is_anonymous and queue.is_fifo and is_plain and stated is None
    shares_memory = stays and not queue.options.durability
    queue.options = queue.options._replace(shares_memory=shares_memory)


def _stated(queue: ObjectAttachment, buffering: int | None) -> int | None:
    """How many items may wait to be sent, if the program or the environment says so."""
    if buffering is not None:
        return check_ahead("buffering", buffering)
    said = os.environ.get(_VARIABLE)
    if not said or not _is_plain(queue):
        return None
    if not said.isdecimal():
        raise ArgumentError(f"{_VARIABLE} is a number of items, not {said!r}")
    return check_ahead(_VARIABLE, int(said))


def _unasked(queue: ObjectAttachment, bound: int) -> int:
    """How many items may wait where neither says so."""
    may = _may_unasked(queue, bound) and not queue.options.durability
    return _BUFFERING if may else 0


def _is_plain(queue: ObjectAttachment) -> bool:
    """Whether such a queue may have buffers that its program does not ask for."""
    return queue.is_fifo and queue.traits.buffers_unasked


def _may_unasked(queue: ObjectAttachment, bound: int) -> bool:
    """Whether a queue may have buffers of which neither says anything: it has no bound, this
    program has all handles to it, and it is not in the memory of this process."""
    is_private = queue.is_anonymous and queue.address.capabilities.persistent
    return not bound and is_private and _is_plain(queue)


def make(queue: ObjectAttachment) -> tuple[DirectPut, DirectGet]:
    """Make what puts and gets through a handle in this process."""
    gets = _make_gets(queue)
    if queue.is_of_asyncio or not queue.buffering.puts:
        return DirectPut(gets), gets
    from .buffered_put import BufferedPut

    return BufferedPut(queue, gets), gets


def _make_gets(queue: ObjectAttachment) -> DirectGet:
    if queue.is_of_asyncio:  # the handle of asyncio that opens it has buffers of its own
        return DirectGet()
    if queue.buffering.gets:
        from .prefetching import HoldingPrefetch, Prefetching

        return (HoldingPrefetch if isinstance(queue, UntilDone) else Prefetching)(queue)
    if queue.buffering.reserves:
        from .read_ahead import ReadAhead

        return ReadAhead(queue)
    return DirectGet()
