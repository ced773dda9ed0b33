"""A step of this machine's clock changes nothing of what waits for a moment."""

from __future__ import annotations

import time

import inside
import pytest

from pressure_mp import Empty, JoinableQueue, TaskQueue
from pressure_mp.drivers import drive
from pressure_mp.operations.deliveries import DeliveryOperations


@pytest.fixture
def step(monkeypatch):
    """Set this process's clock ahead, or back, by an hour."""
    here = time.time

    def step(hours):
        monkeypatch.setattr(time, "time", lambda: here() + 3600 * hours)

    return step


@pytest.mark.parametrize("hours", [-1, 1])
def test_no_task_is_early_or_late_after_a_step_of_the_clock(url, name, step, hours):
    with TaskQueue(name, url=url, ttr=60) as queue:
        queue.put("taken")
        taken = queue.take(0)
        queue.put("waiting", delay=60)
        queue.put("ready", ttl=60)
        step(hours)
        assert queue.take(0).data == "ready"
        with pytest.raises(Empty):
            queue.take(0)
        taken.ack()
        queue.put("soon", delay=0.05)
        assert queue.take(10).data == "soon"
        queue.delete()


def test_no_lease_ends_early_after_a_step_of_the_clock(url, name, step):
    with JoinableQueue(name=name, url=url) as q:
        q.put(1)
        q.get()
        operations = DeliveryOperations(name, "fifo")

        def there():
            binding = inside.bind(q)
            return drive(operations.renew("another-host/1/1/0", True, False), binding.session())

        before = there()
        step(1)
        assert there().now - before.now < 60_000
        q.task_done()
        q.delete()
