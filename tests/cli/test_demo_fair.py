"""`pressure-mp demo fair`, as a process of its own."""

from __future__ import annotations

import re

import pytest
from cli.runs import MAIN, finished, python, started_by
from waiting import lasting

ROW = re.compile(r"^(\w*) +(Queue|FairQueue) +█+ (\d+) ms$", re.MULTILINE)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_hog_makes_the_others_wait_on_a_queue_and_not_on_a_fair_one(method, valkey, name):
    run = finished(started_by(method, "demo", "fair", "--url", valkey.url), name)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("The tenant 'hog' has put 300 jobs; alice, bob, carol put 10 each")
    rows = ROW.findall(run.stdout)
    assert [name for name, _, _ in rows[::2]] == ["hog", "alice", "bob", "carol"]
    assert [kind for _, kind, _ in rows] == ["Queue", "FairQueue"] * 4
    times = [int(milliseconds) for _, _, milliseconds in rows]
    (hog, *behind_the_hog), (fair_hog, *in_turn) = times[::2], times[1::2]
    assert hog < min(behind_the_hog)
    assert max(in_turn) < fair_hog
    with valkey.client() as client:
        assert lasting(client, f"{name}*") == []


def test_a_url_that_no_other_process_can_use_is_refused(name):
    run = finished(python(MAIN, "demo", "fair", "--url", "memory://"), name)
    assert run.returncode == 2
    assert "memory://" in run.stderr
