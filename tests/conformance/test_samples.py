"""The samples of all queues that are noted from time to time: in order, bounded, and not twice. Of
every engine."""

from __future__ import annotations

import asyncio

import pytest
from waiting import until

from pressure_mp.drivers import adrive, drive
from pressure_mp.engines import registry
from pressure_mp.operations.brokers import append_sample, read_samples

HOUR = 3_600_000


@pytest.fixture(params=["thread", "task"])
def run(request, full_url, name):
    """Runs an operation on a broker that has nothing else below its prefix."""
    broker = registry.engine(registry.resolve(full_url, prefix=name)).broker()
    if request.param == "thread":
        return lambda operation: drive(operation, broker.session())

    async def ask(operation):
        return await adrive(operation, broker.asession())

    return lambda operation: asyncio.run(ask(operation))


def test_samples_are_read_in_order_from_a_time_on_and_the_oldest_go(run):
    assert run(read_samples()) == []
    written = [b"%d \x00\xff" % number for number in range(25)]
    for data in written:
        assert run(append_sample(data, 0, 12, HOUR))
    found = run(read_samples())
    assert [one.data for one in found] == written[-12:]
    times = [one.time for one in found]
    assert times == sorted(set(times))
    assert [one.data for one in run(read_samples(times[8]))] == written[-3:]
    assert run(read_samples(times[-1])) == []


def test_a_second_sample_of_the_same_time_is_not_kept(run):
    assert run(append_sample(b"first", HOUR, 10, HOUR))
    assert not run(append_sample(b"second", HOUR, 10, HOUR))
    assert [one.data for one in run(read_samples())] == [b"first"]


def test_samples_end_by_themselves(run):
    assert run(append_sample(b"old", HOUR, 10, 1))
    until(lambda: run(read_samples()) == [])
    assert run(append_sample(b"new", HOUR, 10, HOUR))
    assert [one.data for one in run(read_samples())] == [b"new"]
