"""The queues in a store of ordered keys do in every history what those in memory do."""

from __future__ import annotations

import engines
import pytest
from brokers.kv import StoredBroker
from oracle.machine import Oracle
from oracle.running import run

pytestmark = pytest.mark.timeout(300)

#: How many histories of each discipline; the others are fewer, since less can be done there.
EXAMPLES = {"fifo": 25, "lifo": 5, "priority": 7, "fair": 7}
STORES = [one for one in engines.CHOSEN if issubclass(one.broker, StoredBroker)]


@pytest.fixture(params=STORES, ids=str)
def machine(request, monkeypatch):
    """A class of machines that work on one store."""
    from pressure_mp.engines.contract import session

    # How long a client waits until it looks again by itself; the histories are short.
    monkeypatch.setattr(session, "TICK", 0.05)
    with request.param.make().serving() as broker:

        class Machine(Oracle):
            url = broker.url

            def no_caller_waits(self) -> None:
                assert not broker.waiters(broker._engine, None)

        yield Machine


@pytest.mark.parametrize("discipline", EXAMPLES)
def test_the_engines_agree_on_every_history(machine, discipline):
    run(machine, discipline, EXAMPLES[discipline])
