"""``map`` with a buffersize needs as much memory for many inputs as for few."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from pressure_mp import Executor, aio

# Since Python 3.12 a fork warns when there are threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

INPUTS, BUFFER = 1500, 10
#: Bytes. Calls that are pending take some thousands each: all of them take several times that.
MOST = 1_000_000


class Inputs:
    """So many numbers, of which is known how many were drawn before their results were had."""

    def __init__(self, number):
        self._number = number
        self._drawn = self._had = 0
        self.most_ahead = 0

    def __iter__(self):
        for one in range(self._number):
            self._drawn += 1
            self.most_ahead = max(self.most_ahead, self._drawn - self._had)
            yield one

    def note(self, result):
        """A result was had."""
        assert 0 <= result < self._number
        self._had += 1
        return self._had


def map_in_threads(url, runs):
    with Executor(1, url=url) as executor:
        for inputs in runs:
            for result in executor.map(abs, inputs, buffersize=BUFFER):
                number = inputs.note(result)
            yield number


async def map_all(executor, inputs):
    async for result in executor.map(abs, inputs, buffersize=BUFFER):
        number = inputs.note(result)
    return number


def map_in_asyncio(url, runs):
    loop = asyncio.new_event_loop()
    executor = loop.run_until_complete(aio.Executor(1, url=url).open())
    for inputs in runs:
        yield loop.run_until_complete(map_all(executor, inputs))
    loop.run_until_complete(executor.shutdown())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@pytest.mark.parametrize("map_each", [map_in_threads, map_in_asyncio])
def test_map_holds_no_more_than_its_buffer_however_many_inputs_there_are(map_each, valkey):
    few, many = Inputs(5 * BUFFER), Inputs(INPUTS)
    done = map_each(valkey.url, [few, many])
    tracemalloc.start()
    try:
        assert next(done) == 5 * BUFFER
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        assert next(done) == INPUTS
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert next(done, None) is None
    assert peak - before < MOST
    assert many.most_ahead <= BUFFER + 1  # the next is drawn before a result is handed out
