"""A process that is stopped for longer than its lease."""

from __future__ import annotations

import os
import signal

from waiting import LIMIT, until


def loses(items, process, pipe, other):
    """Stop one that runs ``get_and_tell``: ``other`` gets these items, which it has fetched and not
    handed out, and the items behind them. When it goes on, it finds out, and has none any more."""
    os.kill(process.pid, signal.SIGSTOP)
    assert other.get(timeout=LIMIT) == items[0]
    os.kill(process.pid, signal.SIGCONT)

    def left():
        pipe.send("how many")
        return pipe.recv()

    until(lambda: left() == 0)
    pipe.send("end")
    process.join()
    assert other.get_many(100) == items[1:]
    assert other.stats().in_flight == 0
