"""Histories of clients of a queue in the simulated cluster, each step of which a seed says.

An ordinary run draws a few. The long form, of which each history takes a fiftieth of a second:
``pytest -n 2 --histories 20000 tests/foundationdb/test_histories.py -k clean``
"""

from __future__ import annotations

import pytest
import random_histories
from brokers import foundationdb
from foundation.checking import check
from foundation.histories import History
from foundation.mutants import MUTANTS
from foundation.surroundings import simulated

pytestmark = [
    pytest.mark.timeout(0),
    pytest.mark.skipif(foundationdb.REAL is not None, reason="is simulated"),
]

#: Histories of an ordinary run; and within how many each mutant is found.
FEW, MANY = 60, 2000


def run(seed, here, hard, **likely):
    history = History(seed, here, hard, **likely)
    try:
        history.run()
        check(history)
    finally:
        history.end()


@pytest.mark.parametrize("hard", [False, True], ids=["live", "dying"])
def test_histories_are_clean(hard):
    with simulated() as here:
        for seed in range(random_histories.asked or FEW):
            try:
                run(seed, here, hard)
            except BaseException:
                print(f"the history of the seed {seed}")
                raise


@pytest.mark.parametrize("text", MUTANTS)
def test_histories_find_the_mutant(text):
    change, likely = MUTANTS[text]
    with change(), simulated() as here:
        for seed in range(MANY):
            try:
                run(seed, here, False, **likely)
            except Exception:
                return
    raise AssertionError(f"not found in {MANY} histories: {text}")
