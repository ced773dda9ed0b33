"""Run the random histories of one discipline."""

from __future__ import annotations

from hypothesis import Phase
from hypothesis.stateful import run_state_machine_as_test
from random_histories import drawn

from oracle.machine import Oracle

_STEPS = 50


def run(machine: type[Oracle], discipline: str, examples: int) -> None:
    machine.discipline = discipline
    run_state_machine_as_test(
        machine,
        settings=drawn(
            examples,
            stateful_step_count=_STEPS,
            # A history takes a while, and some of what can go wrong depends on time: one that fails
            # is shown as it was found.
            phases=[Phase.generate],
            database=None,
        ),
    )
