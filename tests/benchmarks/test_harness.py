"""The benchmarks run: in their quickest form, beside the peers that need nothing installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from brokers.servers import find_binary

ROOT = Path(__file__).parents[2]
PEERS = ["pressure", "pressure-buffered", "pressure-500", "mp-queue", "manager"]
PEERS += ["pressure-default", "pressure-unsigned", "redis-brpop", "redis-rpop", "redis-500"]


@pytest.fixture(autouse=True)
def _server():
    find_binary("valkey")


def python(*arguments):
    """What Python prints in the checkout, where the benchmarks are."""
    command = [sys.executable, *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=170)
    assert run.returncode == 0, run.stderr
    return run


@pytest.mark.timeout(180)
def test_a_quick_run_measures_and_writes_the_page(tmp_path):
    kinds = ["transfer-1-1", "bounded-8", "batches", "put", "hand-off-1", "depth-1000"]
    kinds += ["workers-1", "program"]
    options = ["--quick", "--rounds", "1", "--only", *kinds, "--peers", *PEERS]
    run = python("-m", "benchmarks", *options, "--output", str(tmp_path))
    page = (tmp_path / "benchmarks.md").read_text()
    assert "failed" not in run.stderr + page
    for title in ("unbuffered put", "`Queue()`, to not signed", "`Queue()`, the README's program"):
        rows = [line for line in page.splitlines() if line.startswith(f"| {title} |")]
        assert len(rows) == 1
        assert "×" in rows[0].split("|")[4]  # a ratio
    assert "load averages" in page
    assert "Valkey" in page


def test_the_reason_is_told_for_a_peer_that_is_not_there():
    found = python(
        "-c",
        "from benchmarks.peers.base import Peer\n"
        "class Absent(Peer):\n"
        "    distribution, module = 'absent-queue', 'absent_queue'\n"
        "    create = None\n"
        "print(Absent('absent', 'absent').missing())",
    )
    assert "`pip install absent-queue` is needed: No module named 'absent_queue'" in found.stdout


def test_a_process_that_fails_fails_its_case_and_no_more():
    found = python(
        "-c",
        "from benchmarks.processes import CaseFailed, Job, perform\n"
        "try:\n"
        "    perform([Job(int, ('not for int',)), Job(int, ('nor this',))])\n"
        "except CaseFailed as error:\n"
        "    print('CaseFailed:', error)\n",
    )
    assert "CaseFailed: Traceback" in found.stdout
    assert "TypeError" in found.stdout


@pytest.mark.parametrize("program", ["steps", "costs"])
def test_the_costs_of_single_calls_are_measured(program):
    found = python("-m", f"benchmarks.{program}", "--rounds", "8")
    assert " µs" in found.stdout


def test_the_rates_of_queues_over_a_slow_network_are_measured():
    found = python("-m", "benchmarks.link", "--quick")
    rows = [line.split("|") for line in found.stdout.splitlines() if "→" in line or "put," in line]
    assert len(rows) == 8
    rates = {row[1].strip(): float(row[2].replace(",", "")) for row in rows}
    assert all(float(row[3].replace(",", "")) > 0 for row in rows)
    # Whatever the machine: a put that waits for the broker takes a round trip, and that at least
    # the delay both ways, also on a queue with a name; the others do not.
    assert rates["put, `buffering=0`"] <= 1000 < rates["put, default"]
    assert rates["1→1, with a name"] <= 1000


def test_the_executor_is_measured_beside_that_of_the_standard_library():
    found = python("-m", "benchmarks.executor", "--quick")
    lines = found.stdout.splitlines()
    rows = [line.split("|") for line in lines if "| ProcessPoolExecutor |" in line]
    assert len(rows) == 4
    assert all(float(row[5]) > 0 for row in rows)
    assert "200 futures that wait" in found.stdout


def test_the_queues_of_asyncio_are_measured_beside_what_they_are_to_reach():
    found = python("-m", "benchmarks.aio", "--quick")
    rows = [line.split("|")[1:-1] for line in found.stdout.splitlines() if line.startswith("| ")]
    rates, ratios = rows[2:11], rows[13:]
    assert all(float(rate.replace(",", "")) > 0 for _, rate in rates)
    assert [goal.strip() for *_, goal in ratios] == ["≥ 0.7", "", "≥ 0.5", "", "≥ 0.7"]
    assert all(float(ratio) > 0 for _, _, ratio, _ in ratios)
