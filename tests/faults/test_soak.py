"""A process that uses many queues keeps nothing of them: memory, descriptors, threads, keys."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import engines
import pytest
import started
from engines import Can
from faults import soak

#: Seconds of the long form, on the fastest servers, and elsewhere; and of the short form.
LONG, ELSEWHERE, SHORT = 900, 180, 20
#: Bytes that may be kept for each thing that was made: some containers are bounded, and not full
#: yet. In the short form, what calls note for their repeat is still there: it stays for 25 seconds.
#: A handle takes some thousand bytes. And bytes by which other memory may differ.
EACH, EACH_SHORT, NOISE = 40, 150, 150_000
#: Resident memory may differ by so many bytes more: free pieces lie between used ones.
FRAGMENTED = 300_000
#: All memory is in one heap, that of C libraries as well as Python's.
ONE_HEAP = {"PYTHONMALLOC": "malloc", "MALLOC_ARENA_MAX": "1"}


def run(url: str, seconds: float) -> list[dict[str, int]]:
    done = subprocess.run(
        [sys.executable, str(Path(soak.__file__)), url, str(seconds)],
        env=started.environment(**ONE_HEAP),
        stdout=subprocess.PIPE,
        timeout=seconds + 300,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(samples: list[dict[str, int]], long: bool, figures: Any) -> None:
    """The first third is to warm up; the second and the last one are compared. Resident
    memory takes longer than the short form to warm up."""
    third = len(samples) // 3

    def grown(what: str) -> float:
        second, last = samples[third : 2 * third], samples[-third:]
        return statistics.median(s[what] for s in last) - statistics.median(s[what] for s in second)

    made = grown("made")
    figures.note(
        made=samples[-1]["made"],
        bytes_for_each=grown("memory") / made,
        rss_grown=grown("rss"),
        descriptors_grown=grown("descriptors"),
        threads_grown=grown("threads"),
    )
    assert grown("memory") < (EACH if long else EACH_SHORT) * made + NOISE
    assert not long or grown("rss") < EACH * made + NOISE + FRAGMENTED
    assert grown("descriptors") < 3
    assert grown("threads") < 3


def test_a_process_that_makes_and_drops_queues_keeps_nothing_of_them(server, long, figures):
    seconds = SHORT if not long else max(ELSEWHERE, LONG * server.pace)
    check(run(server.url, seconds), long, figures)
    assert server.kept("soak-") == []


@pytest.mark.parametrize("engine", engines.unable(Can.SERVER), ids=str)
def test_a_process_that_makes_and_drops_queues_without_a_server_keeps_nothing_of_them(
    engine, running, name, long, figures
):
    seconds = ELSEWHERE if long else SHORT
    check(run(running[engine.name].url_for(name), seconds), long, figures)
