"""A name, and what was stated of the queue that has it."""

from __future__ import annotations

import pytest

from pressure_mp import (
    FairQueue,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueMismatchError,
)

pytestmark = pytest.mark.usefixtures("world")


@pytest.mark.parametrize("kind", [Queue, JoinableQueue, LifoQueue, PriorityQueue, FairQueue])
def test_a_name_in_the_place_of_another_argument_is_asked_for(kind, url, name):
    with pytest.raises(TypeError, match=rf"not str: did you mean name='{name}'\?$"):
        kind(name, url=url)
    assert not PressureQueue(name, url=url).exists()


def test_a_name_in_the_place_of_the_size_of_a_fair_queue_is_asked_for(url, name):
    with pytest.raises(TypeError, match=rf"maxsize is an int, not str: .* name='{name}'\?$"):
        FairQueue(bool, name, url=url)


def test_a_stated_maxsize_that_differs_is_a_mismatch(url, name):
    q = Queue.create(name, 3, url=url)
    assert Queue(name=name, url=url).maxsize == Queue(3, name, url=url).maxsize == 3
    for how in (Queue, Queue.attach):
        with pytest.raises(QueueMismatchError, match=f"'{name}' exists with maxsize 3, not 4$"):
            how(maxsize=4, name=name, url=url).open()
    q.delete()


def test_a_fair_queue_is_attached_to_without_repeating_its_size(url, name):
    q = FairQueue(bool, 3, name, url=url)
    q.open()
    assert FairQueue(bool, name=name, url=url).maxsize == 3
    assert FairQueue(bool, None, name, url=url).maxsize == 3
    with pytest.raises(QueueMismatchError, match=r"exists with maxsize 3, not 128$"):
        FairQueue(bool, 128, name, url=url).open()
    q.delete()
    assert FairQueue(bool, name=name, url=url).maxsize == 128
