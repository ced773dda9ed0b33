"""The Redis engine does in every history what the memory engine does."""

from __future__ import annotations

import oracle_machine
import pytest
from hypothesis import Phase
from hypothesis.stateful import run_state_machine_as_test
from random_histories import drawn

from pressure_mp.engines.redis import engine, session

pytestmark = pytest.mark.timeout(300)

EXAMPLES = 40
STEPS = 50


@pytest.fixture
def machine(server, monkeypatch):
    """A class of machines that work on one server."""
    # How long a client waits until it looks again by itself; the histories are short.
    for module in (engine, session):
        monkeypatch.setattr(module, "TICK", 0.05)

    class Machine(oracle_machine.Oracle):
        pass

    Machine.url = server.url
    Machine.observer = server.client()
    return Machine


def test_the_engines_agree_on_every_history(machine):
    run_state_machine_as_test(
        machine,
        settings=drawn(
            EXAMPLES,
            stateful_step_count=STEPS,
            # A history takes a while, and some of what can go wrong depends on time: one that fails
            # is shown as it was found.
            phases=[Phase.generate],
            database=None,
        ),
    )
