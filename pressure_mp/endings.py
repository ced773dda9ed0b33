"""What a process does before it ends, in the order of ``multiprocessing.util.Finalize``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

_lock = threading.Lock()
_to_call: set[Callable[[], None]] = set()


def call_at_end(leave: Callable[[], None], priority: int) -> None:
    """Call ``leave`` once when this process ends: the highest ``priority`` first, and those below 0
    after the process has waited for its own children. A forked child begins with nothing to call.
    """
    with _lock:
        if leave in _to_call:
            return
        _to_call.add(leave)
    from multiprocessing.util import Finalize

    Finalize(None, leave, exitpriority=priority)


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    _to_call.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
