"""What tells the queues of one broker and prefix from all others: of every engine."""

from __future__ import annotations

import asyncio

import pytest
from engines import Can

from pressure_mp.drivers import adrive, drive
from pressure_mp.engines import registry
from pressure_mp.operations.brokers import identify


def identity(url, prefix):
    broker = registry.engine(registry.resolve(url, prefix=prefix).started()).broker()
    found = drive(identify(), broker.session())

    async def ask():
        return await adrive(identify(), broker.asession())

    assert asyncio.run(ask()) == found, "in both worlds"
    return found


@pytest.fixture
def prefix(name):
    """One that the user of the documents may use."""
    return f"__pressure__:{name}"


def test_a_broker_has_an_identity_for_each_prefix(url, prefix):
    found = identity(url, prefix)
    assert found
    assert identity(url, prefix) == found
    assert identity(url, f"{prefix}-other") != found


@pytest.mark.needs(Can.SERVER)
def test_the_identity_is_the_same_by_whatever_url(url, prefix):
    spelled = url.replace("127.0.0.1", "localhost")
    assert registry.resolve(spelled) != registry.resolve(url)
    assert identity(spelled, prefix) == identity(url, prefix)


def test_two_databases_of_a_server_have_two_identities(valkey, name):
    assert identity(valkey.url.removesuffix("/0") + "/1", name) != identity(valkey.url, name)
