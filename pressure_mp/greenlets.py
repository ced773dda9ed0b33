"""Forks of programs that eventlet has patched.

The hub of eventlet waits with one epoll object, which a forked child shares with its parent: each
process takes events of the other's connections (epoll(7), "Questions and answers", 6).
"""

from __future__ import annotations

import sys

from . import lifecycle


def _after_fork_in_child() -> None:
    hubs = sys.modules.get("eventlet.hubs")
    if hubs is not None:
        hubs.use_hub(type(hubs.get_hub()))


lifecycle.register("leave the hub of eventlet", _after_fork_in_child)
