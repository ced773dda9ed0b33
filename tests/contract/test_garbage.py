"""What an error leaves behind."""

from __future__ import annotations

import gc
import weakref

import pytest

from pressure_mp import Empty, Full, Queue


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_an_error_keeps_no_handle_alive(url, name, timeout):
    """It is in no cycle: a dropped handle goes at once, and an anonymous queue with its last."""
    q = Queue(1, name, url=url)
    q.put(1)
    gc.disable()
    try:
        with pytest.raises(Full):
            q.put(2, timeout=timeout)
        q.get()
        with pytest.raises(Empty):
            q.get(timeout=timeout)
        q.delete()
        handle = weakref.ref(q)
        del q
        assert handle() is None
    finally:
        gc.enable()
