"""CPython's own ``_TestQueue``, over our queues, in real processes.

One class for each start method, at module level: a spawned child gets the class by its name.
"""

from __future__ import annotations

import multiprocessing
import unittest
from typing import Any

from test import _test_multiprocessing

import pressure_mp


class OverBroker(_test_multiprocessing._TestQueue):
    TYPE = "processes"
    Queue = pressure_mp.Queue
    JoinableQueue = pressure_mp.JoinableQueue


class BufferedQueue(pressure_mp.Queue):
    def __init__(self, maxsize: int = 0, name: str | None = None, **options: Any) -> None:
        super().__init__(maxsize, name, **{"buffering": 64, "prefetch": 64, **options})


class BufferedJoinableQueue(pressure_mp.JoinableQueue):
    def __init__(self, maxsize: int = 0, name: str | None = None, **options: Any) -> None:
        super().__init__(maxsize, name, **{"buffering": 64, "prefetch": 64, **options})


class Fork(OverBroker, unittest.TestCase):
    Process = multiprocessing.get_context("fork").Process
    Event = multiprocessing.get_context("fork").Event


class Spawn(OverBroker, unittest.TestCase):
    Process = multiprocessing.get_context("spawn").Process
    Event = multiprocessing.get_context("spawn").Event


class Forkserver(OverBroker, unittest.TestCase):
    Process = multiprocessing.get_context("forkserver").Process
    Event = multiprocessing.get_context("forkserver").Event


class BufferedFork(Fork):
    Queue = BufferedQueue
    JoinableQueue = BufferedJoinableQueue
