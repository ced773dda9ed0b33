"""One name is one queue, of one kind."""

from __future__ import annotations

import pytest
from order_keys import first

from pressure_mp import (
    FairQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueAlreadyExistsError,
    QueueMismatchError,
    SimpleQueue,
)

pytestmark = pytest.mark.usefixtures("world")

KINDS = {
    "fifo": lambda **options: Queue(**options),
    "lifo": lambda **options: LifoQueue(**options),
    "priority": lambda **options: PriorityQueue(**options),
    "fair": lambda **options: FairQueue(first, **options),
}


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_a_name_that_is_taken_by_another_kind_is_refused(one, other, url, name):
    queue = KINDS[one](name=name, url=url)
    queue.open()
    if one == other:
        assert KINDS[other](name=name, url=url).exists()
    else:
        with pytest.raises(QueueMismatchError, match=f"exists with discipline {one}, not {other}"):
            KINDS[other](name=name, url=url).open()
    queue.delete()
    KINDS[other](name=name, url=url).delete()


def test_kinds_with_the_protocols_keys_refuse_it_too(url, name):
    LifoQueue.create(name, url=url)
    for make in (
        lambda: SimpleQueue(name, url=url).open(),
        lambda: PressureQueue(name, url=url).create(),
        lambda: Queue.attach(name, url=url),
    ):
        with pytest.raises((QueueMismatchError, QueueAlreadyExistsError)):
            make()
