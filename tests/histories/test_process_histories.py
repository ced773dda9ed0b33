"""Processes come and go while they use queues, at random: each history must be one of a queue."""

from __future__ import annotations

import os

import engines
import pytest
import random_histories
from engines import Can
from process_histories import steps
from process_histories.actors import Broken
from process_histories.conducting import Conductor

#: How many histories a run draws for each way in which processes are started, and which part of the
#: number that is asked for with ``--histories``.
NUMBERS = {"fork": (15, 0.6), "spawn": (3, 0.1), "forkserver": (3, 0.1), "all": (4, 0.2)}
#: How many runs may be spent to shrink a history.
MOST_TRIES = 150
#: After so many failures a long run ends.
MOST_FAILURES = 10

pytestmark = pytest.mark.timeout(600)


def run_histories(request, ways, kinds, number, run):
    """Draw histories, and run each; those that fail are shown with as few steps as fail too."""
    file = request.config.getoption("--history", None)
    if file is not None:
        run(steps.parsed(file.read_text()))
        return
    seed = 0 if os.environ.get("CI") else request.config.option.hypothesis_seed
    failures = []
    for which in range(number):
        drawn = steps.Drawing(f"{seed} {request.node.name} {which}", ways, kinds).steps()
        try:
            run(drawn)
        except Broken as error:
            failures.append(f"history {which} of seed {seed}:\n{error}")
            if len(failures) == 1:
                fewest = steps.shrunk(drawn, lambda fewer: is_broken(fewer, run), MOST_TRIES)
                failures[0] += f"\n\nThese fail too:\n{steps.printed(fewest)}"
            if len(failures) == MOST_FAILURES:
                break
    assert not failures, f"{len(failures)} of {which + 1} histories:\n" + "\n\n".join(failures)


def is_broken(fewer, run):
    try:
        run(fewer)
    except Broken:
        return True
    return False


@pytest.mark.parametrize("ways", NUMBERS)
def test_every_history_of_processes_is_one_of_a_queue(request, durable, first, ways):
    usual, part = NUMBERS[ways]
    number = round(random_histories.asked * part) if random_histories.asked else usual
    chosen = steps.WAYS if ways == "all" else (ways, "thread")
    run_histories(
        request,
        chosen,
        steps.KINDS,
        number,
        lambda drawn: Conductor(first, durable.url, durable).run(drawn),
    )


@pytest.mark.parametrize("engine", engines.unable(Can.PROCESSES), ids=str)
def test_every_history_of_threads_is_one_of_a_queue(request, first, name, engine, running):
    anonymous = [kind for kind in steps.KINDS if not kind.startswith("named-")]
    run_histories(
        request,
        ["thread"],
        anonymous,
        random_histories.asked or 30,
        lambda drawn: Conductor(first, running[engine.name].url_for(name)).run(drawn),
    )
