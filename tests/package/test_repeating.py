"""A run that fails says how to repeat it, and that is so."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
import started

CONFTEST = """
import pytest, repeating

def pytest_addoption(parser):
    parser.addoption("--histories", type=int)

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    repeating.choose_seed(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(repeating.Repeating(config))
"""

TESTS = """
from hypothesis import given, settings, strategies as st

ran = []

def test_first():
    ran.append("first")

def test_that_another_one_breaks():
    assert ran == []

@settings(database=None)
@given(st.binary(min_size=8, max_size=8))
def test_of_random_values(value):
    assert value == b"", f"this value: {value!r}"
"""


def run(folder, *args):
    # In an environment without what tells pytest that it is run by another one.
    environ = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *args],
        cwd=folder,
        env={**environ, "PYTHONPATH": started.SUPPORT, "PRESSURE_TEST_SERVERS": "valkey"},
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.timeout(400)  # six runs of pytest
def test_a_run_that_fails_says_how_to_repeat_it(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    output = run(tmp_path, "-n", "0")
    version = "python{}.{}".format(*sys.version_info)
    said = re.findall(rf"{re.escape(version)} -m pytest (.*)", output)
    assert re.findall(r"^PRESSURE_TEST_SERVERS=valkey ", output, re.MULTILINE)
    alone, after, random, _ = (run(tmp_path, *shlex.split(line)) for line in said)
    assert "1 passed" in alone
    assert "1 failed, 1 passed" in after
    value = r"AssertionError: this value: (b.*)"
    assert re.findall(value, random)[0] == re.findall(value, output)[0]


def test_a_run_that_passes_says_no_more_than_its_seed(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    output = run(tmp_path)
    assert "seed of the random histories: " in output
    assert "to repeat" not in output
