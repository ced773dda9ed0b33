"""Processes and rings for the tests of shared memory."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import LIMIT

from pressure_mp.engines.shared import deliveries, layout
from pressure_mp.engines.shared import ring as rings

forking = multiprocessing.get_context("fork")


@pytest.fixture
def start():
    """Processes that are killed at the end."""
    started = []

    def start(program, *arguments, context=forking):
        process = context.Process(target=program, args=arguments, daemon=True)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.join(LIMIT)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder for files in memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def resize(monkeypatch):
    """Rings of so many pages, which begin behind one page and again there when they are empty.
    Takes free all pages but one."""

    def resize(pages):
        monkeypatch.setattr(rings, "_SIZE", pages * layout.PAGE)
        monkeypatch.setattr(rings, "_UNITS", pages * 512)
        monkeypatch.setattr(rings, "_BEGIN", 512)
        monkeypatch.setattr(rings, "_HOT", 512 * 6)
        monkeypatch.setattr(rings, "_NEAR", 512 + 64)
        monkeypatch.setattr(rings, "_PART", layout.PAGE)
        for module in (rings, deliveries):
            monkeypatch.setattr(module, "MOST_TAKEN", 1024)
        monkeypatch.setattr(rings, "_LEFT", 512)

    return resize
