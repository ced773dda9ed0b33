"""The queues in a file of SQLite do in every history what those in memory do."""

from __future__ import annotations

import pytest
from brokers.sqlite import Sqlite
from oracle.machine import Oracle
from oracle.running import run

pytestmark = pytest.mark.timeout(300)

#: How many histories of each discipline; the others are fewer, since less can be done there.
EXAMPLES = {"fifo": 25, "lifo": 5, "priority": 7, "fair": 7}


@pytest.fixture
def machine(monkeypatch):
    """A class of machines that work on one file."""
    from pressure_mp.engines.contract import session

    # How long a client waits until it looks again by itself; the histories are short.
    monkeypatch.setattr(session, "TICK", 0.05)
    with Sqlite().serving() as broker:

        class Machine(Oracle):
            url = broker.url

            def nobody_waits(self) -> None:
                assert not broker.waiters(broker._engine, None)

        yield Machine


@pytest.mark.parametrize("discipline", EXAMPLES)
def test_the_engines_agree_on_every_history(machine, discipline):
    run(machine, discipline, EXAMPLES[discipline])
