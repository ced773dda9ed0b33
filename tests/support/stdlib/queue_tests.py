"""CPython's own tests of the module ``queue``, over our queues. Threads of one process."""

from __future__ import annotations

import queue
import unittest

from test import test_queue
from worlds import looped

import pressure_mp
from pressure_mp.sync import object_queue


def buffered(kind: type[object_queue.ObjectQueue]) -> type[object_queue.ObjectQueue]:
    """The same class with ``buffering=64``; the tests look up what they expect by its name."""

    class Queue(kind):  # type: ignore[misc, valid-type]
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **{"buffering": 64, "prefetch": 64, **options})

    return Queue


class QueueOverBroker(test_queue.BaseQueueTestMixin, unittest.TestCase):
    """``queue`` stays the stdlib's: an ``except queue.Full`` of an existing program must hold."""

    queue = queue
    type2test = pressure_mp.Queue


class JoinableQueueOverBroker(test_queue.BaseQueueTestMixin, unittest.TestCase):
    """The tests look up the order that they expect by the class's name."""

    queue = queue
    type2test = type("Queue", (pressure_mp.JoinableQueue,), {})


class LifoQueueOverBroker(test_queue.BaseQueueTestMixin, unittest.TestCase):
    queue = queue
    type2test = pressure_mp.LifoQueue


class PriorityQueueOverBroker(test_queue.BaseQueueTestMixin, unittest.TestCase):
    queue = queue
    type2test = pressure_mp.PriorityQueue


class SimpleQueueOverBroker(test_queue.BaseSimpleQueueTest, unittest.TestCase):
    queue = queue
    type2test = pressure_mp.SimpleQueue


class QueueOfAsyncio(QueueOverBroker):
    type2test = looped["Queue"]


class JoinableQueueOfAsyncio(QueueOverBroker):
    type2test = type("Queue", (looped["JoinableQueue"],), {})


class LifoQueueOfAsyncio(QueueOverBroker):
    type2test = looped["LifoQueue"]


class PriorityQueueOfAsyncio(QueueOverBroker):
    type2test = looped["PriorityQueue"]


class BufferedQueueOverBroker(QueueOverBroker):
    type2test = buffered(pressure_mp.Queue)


class BufferedJoinableQueueOverBroker(QueueOverBroker):
    type2test = buffered(pressure_mp.JoinableQueue)


class BufferedSimpleQueueOverBroker(SimpleQueueOverBroker):
    type2test = buffered(pressure_mp.SimpleQueue)
