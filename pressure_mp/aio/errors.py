"""The errors that are asyncio's too."""

from __future__ import annotations

import asyncio
import sys
from typing import NoReturn

from ..exceptions import (
    ConsumerInUseError,
    Empty,
    Full,
    PressureError,
    ProducerInUseError,
    ShutDown,
)


class QueueEmpty(Empty, asyncio.QueueEmpty):
    """Empty, for programs that expect asyncio's."""


class QueueFull(Full, asyncio.QueueFull):
    """Full, for programs that expect asyncio's."""


if sys.version_info >= (3, 13):

    class QueueShutDown(ShutDown, asyncio.QueueShutDown):
        """ShutDown, for programs that expect asyncio's."""

else:

    class QueueShutDown(ShutDown):
        """ShutDown; asyncio has one of its own since Python 3.13."""


class _ConsumerInUse(ConsumerInUseError, QueueEmpty):
    """Empty, because another consumer was in the way."""


class _ProducerInUse(ProducerInUseError, QueueFull):
    """Full, because another producer was in the way."""


_KINDS: dict[type[PressureError], type[PressureError]] = {
    ConsumerInUseError: _ConsumerInUse,
    ProducerInUseError: _ProducerInUse,
    Empty: QueueEmpty,
    Full: QueueFull,
    ShutDown: QueueShutDown,
}


def raise_as_of_asyncio(error: PressureError) -> NoReturn:
    """Raise the same error, as one of asyncio's too if there is such a kind."""
    for kind, ours in _KINDS.items():
        if isinstance(error, kind):
            found = ours(*error.args)
            found.__dict__.update(error.__dict__)
            try:
                raise found.with_traceback(error.__traceback__) from error.__cause__
            finally:
                del found, error  # no cycle
    raise error
