"""A consumer of a JoinableQueue that ends with items that it did not acknowledge."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pressure_mp import JoinableQueue

PROGRAM = """
import sys
from pressure_mp import JoinableQueue

name, url, items, acknowledges = sys.argv[1:]
q = JoinableQueue(name=name, url=url)
for _ in range(int(items)):
    q.get()
if acknowledges == "yes":
    q.task_done()
"""


def run(server, name, items, acknowledges):
    """What the program says on stderr."""
    arguments = (name, server.url, str(items), acknowledges)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_process_that_never_called_task_done_says_at_its_end_that_items_come_again(server, name):
    q = JoinableQueue(name=name, url=server.url)
    q.put_many(["a", "b", "c"])
    said = run(server, name, 2, "no")
    assert said.startswith(f"2 items of queue {name!r} are delivered again")
    assert "task_done()" in said
    assert q.get_many(3, block=False) == ["a", "b", "c"]
    for _ in range(3):
        q.task_done()


@pytest.mark.parametrize(("items", "acknowledges"), [(2, "yes"), (0, "no")])
def test_a_process_that_calls_task_done_or_has_nothing_says_nothing(
    server, name, items, acknowledges
):
    """It may have been interrupted in its last item: that is delivered again, as it should be."""
    q = JoinableQueue(name=name, url=server.url)
    q.put_many(["a", "b", "c"])
    assert run(server, name, items, acknowledges) == ""
