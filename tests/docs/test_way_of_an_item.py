"""The way of an item through the modules is as the guide for contributors tells it."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pressure_mp
from pressure_mp import Queue
from pressure_mp.engines.shared import linux

PACKAGE = Path(pressure_mp.__file__).parent
GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"

pytestmark = pytest.mark.skipif(not linux.EXISTS, reason="no queue is in memory on this system")


def told(way: str) -> list[str]:
    """The modules that the guide names for a way, in order."""
    (line,) = re.findall(rf"^- \*\*{re.escape(way)}\*\*:(.*?)(?=^- \*\*|^$)", _guide(), re.M | re.S)
    named = re.findall(r"`([\w/]+\.py)`", line)
    return list(dict.fromkeys(name for name in named if (PACKAGE / name).exists()))


def _guide() -> str:
    return GUIDE.read_text()


def traced(call: Any) -> list[str]:
    """The modules of the package whose functions a call runs in this thread, in order."""
    found: dict[str, None] = {}

    def note(frame: Any, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            found.setdefault(path.relative_to(PACKAGE).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(found)


def test_of_an_anonymous_queue(server):
    with Queue(url=server.url) as q:
        for _ in range(3):
            q.put("item")
            q.get()
        time.sleep(0.01)  # the next put follows no other
        assert traced(lambda: q.put("item")) == told("A put into `Queue()` that follows no other")
        assert traced(q.get) == told("A get from `Queue()`")
        assert puts_behind_others(q) == told("A put into `Queue()` that follows others at once")


def puts_behind_others(q: Queue[str]) -> list[str]:
    """The modules of a put while items wait, and then the modules of the thread that sends them."""
    for _ in range(100):  # the thread may have sent all before the put
        for _ in range(200):
            q.put("item")
        found = traced(lambda: q.put("item"))
        if "buffering/sender.py" not in found:
            return [*found, "buffering/sender.py", "buffering/outbox.py"]
    pytest.fail("no put found an item that waits")


def test_of_a_queue_with_a_name(server, name):
    with Queue(name=name, url=server.url) as q:
        for _ in range(3):
            q.put("item")
            q.get()
        assert traced(lambda: q.put("item")) == told("A put into `Queue(name=...)`")
        assert traced(q.get) == told("A get from `Queue(name=...)`")


def test_the_guide_takes_at_most_forty_lines_for_it():
    section = _guide().split("### The way of an item")[1].split("\nA get that waits")[0]
    assert len(section.strip().splitlines()) <= 40
