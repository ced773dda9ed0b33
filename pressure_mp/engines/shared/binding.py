"""The binding of an anonymous queue, which may have its items in shared memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..contract.session import AsyncSession, Options
from .sessions import SharedSession
from .shared_queue import NO_FILE, Below, SharedQueue, look


class SharedBinding(SharedQueue):
    """A binding to a queue with items in shared memory."""

    def session(self) -> SharedSession:
        return SharedSession(self)

    def asession(self) -> AsyncSession:
        return _loop_session()(self)


@functools.cache
def _loop_session() -> Callable[[SharedQueue], AsyncSession]:
    """Load asyncio only in programs that use it."""
    from .loop_session import SharedLoopSession

    return SharedLoopSession


def bind(below: Below, name: str, options: Options) -> Any:
    """Bind an anonymous queue: at the broker alone, or with its items in shared memory, if they are
    there or may be."""
    ring, problem = look(name)
    if ring is not None:
        return SharedBinding(below, name, options.lease, ring)
    if problem or options.shares_memory:
        return SharedBinding(below, name, options.lease, None, problem or NO_FILE)
    return below
