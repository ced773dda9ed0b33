"""CPython's own ``_TestQueue``, over our queues, in real processes.

One class for each start method, at module level: a spawned child gets the class by its name.
"""

from __future__ import annotations

import multiprocessing
import unittest

from test import _test_multiprocessing

import pressure_mp


class OverBroker(_test_multiprocessing._TestQueue):
    TYPE = "processes"
    Queue = pressure_mp.Queue
    JoinableQueue = pressure_mp.JoinableQueue


class Fork(OverBroker, unittest.TestCase):
    Process = multiprocessing.get_context("fork").Process
    Event = multiprocessing.get_context("fork").Event


class Spawn(OverBroker, unittest.TestCase):
    Process = multiprocessing.get_context("spawn").Process
    Event = multiprocessing.get_context("spawn").Event


class Forkserver(OverBroker, unittest.TestCase):
    Process = multiprocessing.get_context("forkserver").Process
    Event = multiprocessing.get_context("forkserver").Event
