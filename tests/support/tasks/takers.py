"""Takers of tests: that wait, that take the tasks that are there, and that find none."""

from __future__ import annotations

import threading
import time

import pytest
from waiting import HOURS, LIMIT, Background, parks, until

from pressure_mp import BrokerUnavailable, Empty, ShutDown, TaskQueue


def parked(queue, **options):
    """A taker that waits."""
    taker = Background(queue.take, HOURS, **options)
    until(lambda: parks(taker))
    return taker


def taken(queue, number, **options):
    return [task.data for task in queue.take_many(number, timeout=0, **options)]


def is_empty(queue, **options):
    with pytest.raises(Empty):
        queue.take(0, **options)
    return True


def answers(queue):
    """The statistics of a queue; None while its broker is away."""
    try:
        return queue.stats()
    except BrokerUnavailable:
        return None


class Takers:
    """Threads that take tasks, whose data are their keys, and acknowledge each after a moment,
    until the queue, which is shut down, is empty. ``now`` is how many tasks of each key they have,
    ``most`` how many they had at a time, and ``done`` the keys of the acknowledged tasks."""

    def __init__(self, queue, url, number, keys):
        self._name, self._url, self._lock = queue.name, url, threading.Lock()
        self.now, self.most, self.done = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0), []
        self._threads = [Background(self._work) for _ in range(number)]

    def forget(self):
        """Count ``most`` from now on."""
        with self._lock:
            self.most = dict.fromkeys(self.most, 0)

    def _work(self):
        handle = TaskQueue.attach(self._name, url=self._url)
        while True:
            try:
                task = handle.take(LIMIT)
            except ShutDown:
                return
            key = task.data
            with self._lock:
                self.now[key] += 1
                self.most[key] = max(self.most[key], self.now[key])
            time.sleep(0.001)
            with self._lock:
                self.now[key] -= 1
                self.done.append(key)
            task.ack()

    def join(self):
        for thread in self._threads:
            thread.result()
