"""CPython's own tests of the module ``queue``, over our queues. Threads of one process."""

from __future__ import annotations

import queue
import unittest

from test import test_queue

import pressure_mp


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
